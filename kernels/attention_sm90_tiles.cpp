#include "kernels/attention_sm90_tiles.h"

#include <tuple>

#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

// K and V heads whose keys stay in L2 together. Of a window, those do that are seen at a time: each
// head's window, and the keys of the rows that all CTAs have under way. Without one, heads of twice
// the bytes are faster than those that fit (docs/log/2026-11-25-attention-forward-order.md).
Dim kv_heads_in_l2(const AttentionParameters& p, const Attention& a, const TilePlan& plan) {
  const Dim kv_bytes = max(p.keys, 1) * (a.dim + a.dim_v) * size_of(a.dtype);
  const Dim whole = max(Dim(l2_bytes(a)) * (a.window == 0 ? 2 : 1) / kv_bytes, 1);
  if (!plan.waits_for_copies) return whole;
  const Dim keys = l2_bytes(a) / ((a.dim + a.dim_v) * size_of(a.dtype));
  const Dim under_way = multiprocessors() * (a.block_q / plan.packed_heads);
  return max(whole, max(keys - under_way, 0) / a.window);
}

// Heads are taken in groups whose K and V stay in L2 together. Without a window they have no more
// heads than let four tiles of each run at once, or eight on small machines: at short rows larger
// groups are slower (the same log).
Dim heads_of_group(const AttentionParameters& p, const Attention& a, const Dim& heads,
                   const TilePlan& plan) {
  Dim fit = kv_heads_in_l2(p, a, plan) * (p.group / plan.packed_heads);
  if (a.window == 0) fit = min(fit, max(multiprocessors() / 4, 8));
  return in_even_groups(heads, fit);
}

}  // namespace

TensorView Work::part(const Tensor& tensor, const Block& rows, const Selector& heads_of_tensor,
                      const Selector& columns) const {
  return batch ? tensor(*batch, rows, heads_of_tensor, columns)
               : tensor(rows, heads_of_tensor, columns);
}

TensorView Work::sums(const Tensor& lse, const Block& rows) const {
  return batch ? lse(*batch, heads, rows) : lse(heads, rows);
}

BatchOrder::BatchOrder(const AttentionParameters& p, const Attention& a, const TilePlan& plan)
    : BatchOrder(p, a, plan, ceil_div(p.queries, a.block_q / plan.packed_heads)) {}

BatchOrder::BatchOrder(const AttentionParameters& p, const Attention& a, const TilePlan& plan,
                       const Dim& row_blocks)
    : p_(p),
      a_(a),
      packed_heads_(plan.packed_heads),
      block_q_(a.block_q / packed_heads_),
      row_blocks_(row_blocks),
      heads_(p.batch * (a.heads / packed_heads_)),
      group_(heads_of_group(p, a, heads_, plan)),
      runs_(row_blocks_) {
  if (!plan.slides) return;
  group_ = heads_;  // a window's keys stay in L2 of whatever heads
  // For every CTA as many long runs, and what is left of its share tile by tile, so that all end
  // together.
  const Dim ctas = multiprocessors(), share = row_blocks_ * heads_ / ctas;
  const Dim long_runs = max(ctas / max(heads_, 1), 1);
  const Dim of_cta = max(ceil_div(heads_ * long_runs, ctas), 1);
  const Dim length = min(row_blocks_ / long_runs, ceil_div(share, of_cta));
  // One tile where the blocks of keys that two tiles see would not stay.
  const Dim shifted = min((p.keys - p.queries) % plan.slide_multiple, 1);
  long_run_ = max(length * (1 - shifted), 1);
  long_runs_ = min(long_runs, row_blocks_ / *long_run_);
  runs_ = long_runs_ + row_blocks_ - long_runs_ * *long_run_;
}

Run BatchOrder::run(const Index& number) const {
  const Index packs = a_.heads / packed_heads_;
  if (!a_.causal) {
    const Dim of_head = max(row_blocks_, 1);
    const Index head = number / of_head;
    return {Place{number % of_head, head % packs, head / packs}, 1};
  }
  const Dim per_group = max(group_ * runs_, 1);
  const Index first = number / per_group * group_;
  return of_heads(number % per_group, first, min(heads_ - first, group_));
}

Run BatchOrder::of_heads(const Index& number, const Index& first, const Index& height) const {
  const Index packs = a_.heads / packed_heads_, head = first + number % height;
  const auto place = [&](const Index& tiles_before) {
    // The longest rows first.
    return Place{row_blocks_ - 1 - tiles_before, head % packs, head / packs};
  };
  const Index run = number / height;
  if (!long_run_) return {place(run), 1};
  const Index whole = min(run, long_runs_);
  return {place(whole * *long_run_ + (run - whole)), select(run < long_runs_, *long_run_, 1)};
}

Work BatchOrder::work(const Place& place) const {
  return {p_.queries.block(place.row_block, block_q_),
          Dim(a_.heads).block(place.pack, packed_heads_),
          place.pack / (p_.group / packed_heads_),
          p_.keys,
          p_.mask,
          place.sequence};
}

PairOrder::PairOrder(const AttentionParameters& p, const Attention& a, const TilePlan& plan)
    : BatchOrder(p, a, plan), pairs_(ceil_div(row_blocks_, 2)) {}

Index PairOrder::pair(const Index& round) const {
  const Index own = cta_index() / 2;
  return round * clusters() + select(round % 2 == 0, own, clusters() - 1 - own);
}

Place PairOrder::place(const Index& pair) const {
  const Dim heads = max(heads_, 1), of_head = max(pairs_, 1);
  const Index head = a_.causal ? pair % heads : pair / of_head;
  const Index longer_ones = a_.causal ? pair / heads : pair % of_head;
  const Index packs = a_.heads / packed_heads_;
  return {(pairs_ - 1 - longer_ones) * 2 + cluster_rank(), head % packs, head / packs};
}

KeyBlocks::KeyBlocks(const Work& work, const Attention& a, const Block& queries)
    : first(0), last(0), whole_first(0), whole_last(0) {
  std::tie(first, last) = work.mask.visible(queries, work.keys, a.block_k);
  std::tie(whole_first, whole_last) = work.mask.full(queries, work.keys, a.block_k);
}

KeyBlocks KeyBlocks::within(const KeyBlocks& tile, const Block& queries) const {
  const Index begin = min(max(first, tile.first), tile.last);
  const Index end = select(queries.start() < queries.limit(), min(last, tile.last), begin);
  return KeyBlocks(begin, max(begin, end), *this);
}

}  // namespace tilewright::kernels
