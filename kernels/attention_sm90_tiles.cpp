#include "kernels/attention_sm90_tiles.h"

#include <tuple>

namespace tilewright::kernels {
namespace {

constexpr std::int64_t kL2Bytes = 32 << 20;  // measured: docs/performance.md

// Heads are taken in groups whose K and V stay in L2 together. The groups are of even size: a last
// one of few heads would end with its longest tiles on some of the multiprocessors only.
Dim heads_of_group(const AttentionParameters& p, const Attention& a, const Dim& heads,
                   int packed_heads) {
  const Dim kv_bytes = max(p.keys, 1) * (a.dim + a.dim_v) * size_of(a.dtype);
  const Dim fit = max(kL2Bytes / kv_bytes, 1) * (p.group / packed_heads);
  return ceil_div(heads, max(ceil_div(heads, fit), 1));
}

}  // namespace

TileOrder::TileOrder(const AttentionParameters& p, const Attention& a, int packed_heads)
    : p_(p),
      a_(a),
      packed_heads_(packed_heads),
      block_q_(a.block_q / packed_heads),
      row_blocks_(ceil_div(p.queries, block_q_)),
      heads_(p.batch * (a.heads / packed_heads)),
      group_(heads_of_group(p, a, heads_, packed_heads)) {}

TileOrder::Place TileOrder::place(const Index& tile) const {
  const Dim per_group = max(group_ * row_blocks_, 1);
  const Index first = tile / per_group * group_, in_group = tile % per_group;
  const Index height = min(heads_ - first, group_);
  const Index head = first + in_group % height, packs = a_.heads / packed_heads_;
  // The longest first.
  return {row_blocks_ - 1 - in_group / height, head % packs, head / packs};
}

Work TileOrder::work(const Place& place) const {
  return {p_.queries.block(place.row_block, block_q_),
          Dim(a_.heads).block(place.pack, packed_heads_), place.pack / (p_.group / packed_heads_),
          place.batch};
}

KeyBlocks::KeyBlocks(const AttentionParameters& p, const Attention& a, const Block& queries)
    : first(0), last(0), whole_first(0), whole_last(0) {
  std::tie(first, last) = p.mask.visible(queries, p.keys, a.block_k);
  std::tie(whole_first, whole_last) = p.mask.full(queries, p.keys, a.block_k);
}

KeyBlocks KeyBlocks::within(const KeyBlocks& tile, const Block& queries) const {
  const Index begin = min(max(first, tile.first), tile.last);
  const Index end = select(queries.start() < queries.limit(), min(last, tile.last), begin);
  return KeyBlocks(begin, max(begin, end), *this);
}

}  // namespace tilewright::kernels
