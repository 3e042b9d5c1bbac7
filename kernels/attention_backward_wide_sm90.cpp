#include "kernels/attention_backward_wide_sm90.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_divided_sm90.h"
#include "kernels/attention_backward_pair_sm90.h"
#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_backward_wide_parts.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace wide {
namespace {

// Columns of a half of dQ that are added in their own step, the others in the next. Each part has
// its turns.
int early_of(const Attention& a) { return std::min(half_of(a.dim), 64); }
// Of a pair of CTAs each half has turns.
int turns_of(const Attention& a) { return half_of(a.dim) > early_of(a) ? 2 : 1; }

// Of a block of 64 keys, each warpgroup also sums its half of the columns of dQ.
template <typename Keys>
class WideBackward {
 public:
  WideBackward(Kernel& kernel, const Attention& a, const WideBackwardPlan& plan)
      : a_(a),
        half_(half_of(a.dim)),
        half_v_(half_of(a.dim_v)),
        early_(early_of(a)),
        scores_(a),
        sequences_(kernel, a, plan.ordered, parts_of(kernel, plan)),
        tensors_(kernel, a, sequences_, summed_shapes(a, sequences_, plan)),
        next_(kernel.workspace("next_block", 1)),
        blocks_(sequences_.count()),
        kv_ring_(kernel, "kv", stages(1),
                 {{a.dtype, kHalves * kRows, half_v_}, {a.dtype, kHalves * kRows, half_}}),
        ring_(kernel, "rows", stages(kRowStages),
              {{a.dtype, kHalves * kRows, half_},
               {a.dtype, kHalves * kRows, half_v_},
               {f32, 8, kRows},
               {f32, 8, kRows}}),
        p_(kernel, "p", a.dtype, kRowStages * kRows, kRows),
        ds_(kernel, "ds", a.dtype, kRows, kRows),
        p_full_(kernel, "p_full"),
        ds_full_(kernel, "ds_full"),
        all_math_(kernel, kHalves * 128) {
    kv_ring_.numbered(kKeyNumbers);
    ring_.numbered(3);
    kernel.ctas(multiprocessors());
    const RegisterBudget few = registers(24);
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_blocks(); })};
    if (plan_case("wide dQ in order", plan.ordered)) {
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      for (int part = 0; part < turns_of(a); ++part) {
        const std::string number = std::to_string(part);
        turns_.emplace_back(kernel, "turn" + number, *tensors_.turns, kHalves * 128);
        roles.push_back(role("end_turns" + number, warps(1), few, [this, part] {
          end_turns(kv_ring_, turns_[static_cast<std::size_t>(part)]);
        }));
      }
    }
    roles.push_back(role("math", warpgroups(kHalves), registers(240),
                         [this](const Index& group) { compute_blocks(group); }));
    kernel.roles(roles);
    kernel.require({no_stack, no_spills});
  }

 private:
  using Sequence = typename Keys::One;
  Block keys_of(const Sequence& sequence, const Index& block) const {
    return sequence.keys.block(block, kRows);
  }

  void load_blocks() {
    hand_out(
        next_, blocks_, [&](const Index& number) { load_block(sequences_.place(number)); },
        [&] { kv_ring_.produce(no_keys(kEndOfKeys, 0)); });
  }

  void load_block(const KeyPlace& at) {
    load_at(sequences_, at, kRows,
            [&](const Sequence& sequence, const Block& cols) { load_keys(at, sequence, cols); });
  }

  // With each block of keys its place, of which block -1 ends the work, and how many blocks of rows
  // follow: those of all heads that share the keys, in the order of for_rows.
  void load_keys(const KeyPlace& at, const Sequence& sequence, const Block& cols) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, kRows);
    const auto [whole_first, whole_last] = sequence.mask.full_rows(cols, sequence.queries, kRows);
    const Members members = members_of(tensors_, sequences_.parts(), at);
    const Index of_head = last - first, steps = of_head * members.count;
    const auto load_step = [&](const Index& i) {
      const RowStep step = row_step(at.way, of_head, members.count, i);
      const Index row = first + step.row;
      load_rows(sequence, row, members.first + step.member,
                select(row >= whole_first && row < whole_last, 0, 1));
    };
    // The first rows come while the block before is being stored, which K and V wait for.
    when(steps > 0, [&] { load_step(0); });
    kv_ring_.produce(key_numbers(at, steps), [&](const Slot& kv) {
      load_halves(sequence, tensors_.V, cols, at.kv_head, a_.dim_v, kv[0], kOfKeys);
      load_halves(sequence, tensors_.K, cols, at.kv_head, a_.dim, kv[1], kOfKeys);
    });
    for (Index i : range(1, steps)) load_step(i);
  }

  // With each block of rows its number, that among all that are kept, and whether a mask cuts it.
  void load_rows(const Sequence& sequence, const Index& row, const Index& head,
                 const Index& is_cut) {
    const Block rows = sequence.queries.block(row, kRows);
    const Block statistics =
        sequences_.of_rows(kRows).back().block(sequence.kept_number(row), kRows);
    const Block one = Dim(a_.heads).block(head, 1);
    const Index kept = sequences_.kept_number(sequence, head, row, kRows);
    ring_.produce({row, kept, is_cut}, [&](const Slot& slot) {
      load_halves(sequence, tensors_.Q, rows, head, a_.dim, slot[0], kOfRows);
      load_halves(sequence, tensors_.dO, rows, head, a_.dim_v, slot[1], kOfRows);
      tma_load(sequence.kept_block(tensors_.L, statistics, one), slot[2].first_row());
      tma_load(sequence.kept_block(tensors_.D, statistics, one), slot[3].first_row());
    });
  }

  void await_turns() {
    for_key_blocks(kv_ring_, [&](const KeyPlace& at, const Index& steps) {
      const Sequence sequence = sequences_.of(at.sequence);
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = ring_.consume();
        const Index row = slot.number(0), sum = slot.number(1) * turns_of(a_);
        ring_.release(slot);
        const Index turn = turn_of(a_, sequence, at, row);
        for (std::size_t part = 0; part < turns_.size(); ++part) {
          turns_[part].await(sum + static_cast<int>(part), turn);
        }
      }
    });
  }
  void compute_blocks(const Index& group) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot kv = kv_ring_.consume();
      when(
          kv.number() >= 0,
          [&] {
            compute_block(group, kv);
            more = true;
          },
          [&] {
            kv_ring_.release(kv);
            more = false;
          });
    });
  }

  void compute_block(const Index& group, const Slot& kv) {
    Var dk{zeros({kRows, half_})}, dv{zeros({kRows, half_v_})};
    const Index steps = kv.number(3);
    when(steps > 0, [&] {
      // What the step before has left of dQ to add, and its block of rows. Memory takes additions
      // slower than there are products to hide them: they are dealt out over the step.
      const bool has_rest = plan_case("dQ in two products", half_ > early_);
      Var rest{zeros({kRows, std::max(half_ - early_, kSumColumns)})};
      Cell<Index> rest_rows(0), stage(0);
      const auto add_rest = [&](const Place& place, int from, int to) {
        const Tile all_rest = rest;
        const int first = std::min(from, half_ - early_), last = std::min(to, half_ - early_);
        if (first == last) return;
        add(place, group, early_ + first, all_rest.slice({0, first}, {kRows, last - first}));
      };
      const auto step = [&](bool has_before) {
        const Slot slot = ring_.consume();
        const Index is_cut = slot.number(2);
        const Pending products = rows_product(kv[1], slot[0], group);
        const Pending value_products = rows_product(kv[0], slot[1], group);
        const Tile l = statistic(slot[2], group), d = statistic(slot[3], group);
        std::optional<Place> place;
        if (has_rest && has_before) {
          place = begin(1, rest_rows);
          add_rest(*place, 0, kSumColumns);
        }
        const Tile weights = weights_of(
            scores_, sequences_, {group, kv.number(2), slot.number(0), is_cut}, wait(products), l,
            [&](const Sequence& sequence) { return keys_of(sequence, kv.number(0)); });
        const SharedView p = p_.rows(kRows * stage, kRows);
        store(own_rows(p, group).T(), weights.cast(a_.dtype));
        fence_proxy_async();
        p_full_.arrive();
        if (place) {
          add_rest(*place, kSumColumns, half_);
          end(1, *place);
        }
        // Behind it the other warpgroup has ended the products of the step before.
        p_full_.wait();
        const Pending sum_v = wgmma(p.T(), half(slot[1], group), dv);
        const Tile ds = score_gradient(scores_, weights, wait(value_products), l, d);
        store(own_rows(ds_, group).T(), ds.cast(a_.dtype));
        fence_proxy_async();
        ds_full_.arrive();
        ds_full_.wait();
        const SharedView k = half(kv[1], group);
        const Pending first = wgmma(ds_, k.columns(0, early_));
        std::optional<Pending> second;
        if (has_rest) second = wgmma(ds_, k.columns(early_, half_ - early_));
        const Pending sum_k = wgmma(ds_.T(), half(slot[0], group), dk);
        dv = wait(sum_v);
        const Index rows = slot.number(1);
        const Tile early = wait(first);
        const Place early_place = begin(0, rows);
        add(early_place, group, 0, early);
        end(0, early_place);
        if (second) rest = wait(*second);
        dk = wait(sum_k);
        rest_rows = rows;
        stage = 1 - stage;
        ring_.release(slot);
      };
      step(false);
      for ([[maybe_unused]] Index i : range(1, steps)) step(true);
      if (has_rest) {
        const Place place = begin(1, rest_rows);
        add_rest(place, 0, half_);
        end(1, place);
      }
    });
    store_gradients(group, kv, dk, dv);
  }

  // The block of rows whose dQ is added to; in order, the turn.
  struct Place {
    Index rows;
    std::optional<Turns::Turn> turn;
  };
  Place begin(std::size_t part, const Index& rows) {
    if (turns_.empty()) return {rows, std::nullopt};
    const Turns::Turn turn = turns_[part].begin();
    return {turn.sum() / turns_of(a_), turn};
  }
  void end(std::size_t part, const Place& place) {
    if (place.turn) turns_[part].end(*place.turn);
  }

  // Columns of the warpgroup's half of dQ, from `first` on.
  void add(const Place& place, const Index& group, int first, const Tile& dq) const {
    const Dim lines = wide_backward_sums(a_, sequences_.kept_blocks(kRows))[0];
    const Index tile = place.rows * sum_tiles(a_) + group * (half_ / kSumColumns);
    add_to_sums(tensors_.sums, lines, tile + first / kSumColumns, dq, place.turn);
  }

  // Through V and K, which no product reads any more.
  void store_gradients(const Index& group, const Slot& kv, const Tile& dk, const Tile& dv) {
    const Index block = kv.number(0), kv_head = kv.number(1);
    const Sequence sequence = sequences_.of(kv.number(2));
    all_math_.sync();
    const auto put = [&](const Tensor& to, int dim, const SharedView& through, const Tile& tile) {
      const SharedView own = half(through, group);
      store(own, tile.cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      const Block rows = keys_of(sequence, block).part(warp_index(), 16);
      tma_store(sequence.rows(to, rows, kv_head, Dim(dim).block(group, half_of(dim))),
                own.rows(16 * warp_index(), 16));
      bulk_commit();
    };
    const auto put_values = [&](const Tile& sum) { put(tensors_.dV, a_.dim_v, kv[0], sum); };
    const auto put_keys = [&](const Tile& sum) {
      put(tensors_.dK, a_.dim, kv[1], sum * scores_.product_scale);
    };
    if (tensors_.key_sums) {
      const Index number = sequences_.kept_keys(sequence, kv_head, block, a_.block_k);
      tensors_.key_sums->add({number, kv.number(5)}, group, /*of_keys=*/false, dv, put_values);
      tensors_.key_sums->add({number, kv.number(5)}, group, /*of_keys=*/true, dk, put_keys);
    } else {
      put_values(dv);
      put_keys(dk);
    }
    bulk_wait_read(0);
    kv_ring_.release(kv);
  }

  const Attention& a_;
  const int half_, half_v_, early_;
  AttentionScores scores_;
  Keys sequences_;
  GradientTensors tensors_;
  Tensor next_;
  Dim blocks_;
  Ring kv_ring_, ring_;
  SharedTile p_, ds_;
  ClusterBarrier p_full_, ds_full_;
  NamedBarrier all_math_;
  std::deque<Turns> turns_;  // in order: of each part of dQ
};

}  // namespace
}  // namespace wide

bool is_wide_backward(const Attention& a) { return std::max(a.dim, a.dim_v) > 128; }

void check_wide_backward(const Attention& a, const Caller& caller) {
  check_elements(a, caller);
  const int keys = wide_backward_keys(a);
  if (a.block_q != wide::kRows || a.block_k != keys) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_sm90_backward_blocks(attention): 64 queries and " + std::to_string(keys) +
            " keys");
  }
}

std::vector<Dim> wide_backward_sums(const Attention& a, const Dim& blocks) {
  return {blocks * (wide::sum_tiles(a) * wide::kSumLines), wide::kSumLine};
}

int wide_backward_ctas(const Attention& a) { return is_paired_backward(a) ? 2 : 1; }
int wide_backward_keys(const Attention& a) { return wide::kRows * wide_backward_ctas(a); }

WideBackwardPlan wide_backward_plan(const Attention& a, Order order, KeySums keys) {
  const bool shares = plan_case("heads share keys above 128 columns", a.heads > a.kv_heads);
  plan_case("sums of wide keys apart", shares && keys == KeySums::apart);
  const bool alone_converts =
      plan_case("who alone adds converts wide dQ",
                order == Order::blocks && a.causal && is_paired_backward(a));
  return {order == Order::blocks, shares, keys, alone_converts};
}

int wide_backward_turns(const Attention& a) { return wide::turns_of(a); }

template <typename Sequences>
Kernel wide_gradients_sm90(const Attention& a, const WideBackwardPlan& plan,
                           const std::string& name) {
  if (plan_case("products divided among warpgroups", is_divided_backward(a))) {
    return divided_gradients_sm90<Sequences>(a, plan, name);
  }
  if (plan_case("pairs of CTAs", is_paired_backward(a))) {
    return pair_gradients_sm90<Sequences>(a, plan, name);
  }
  Kernel kernel(name);
  wide::WideBackward<KeysOf<Sequences>>(kernel, a, plan);
  return kernel;
}
template Kernel wide_gradients_sm90<Batch>(const Attention&, const WideBackwardPlan&,
                                           const std::string&);
template Kernel wide_gradients_sm90<Packed>(const Attention&, const WideBackwardPlan&,
                                            const std::string&);

template <typename Sequences>
Kernel wide_query_gradient_of_sums(const Attention& a, const WideBackwardPlan& plan,
                                   const std::string& name) {
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, wide::kRows);
  const std::vector<Dim> shape = wide_backward_sums(a, sequences.kept_blocks(wide::kRows));
  const Tensor sums = kernel.in("sums", f32, shape);
  std::optional<Tensor> turns;
  if (plan.ordered) {
    turns = kernel.in("turns", i32, {sequences.kept_blocks(wide::kRows) * wide_backward_turns(a)});
  }
  const std::vector<Dim> of_queries = sequences.of_queries(a.dim);
  const Tensor dQ = plan.alone_converts ? kernel.inout("dQ", a.dtype, of_queries)
                                        : kernel.out("dQ", a.dtype, of_queries);
  // A half of the columns, so that many loads are under way at once.
  const auto at = sequences.last_block_of_queries(kernel, wide::kRows, wide::kHalves);
  const int tiles = wide::sum_tiles(a) / wide::kHalves;
  const Index kept = sequences.kept_number(at, at.head, at.number, wide::kRows);
  const Index first = (kept * wide::kHalves + at.part) * tiles;
  // A thread has eight columns of two rows, of which it loads 64 bytes in a row as fragments lie,
  // and stores 16 bytes at a time.
  const RegisterMap by_rows{{{8, 1, 1}, {2, 0, 8}}, {{4, 1, 8}, {8, 0, 1}}, {{4, 0, 16}}};
  const auto convert = [&](const std::optional<Tile>& count) {
    std::vector<Tile> parts;
    for (int i = 0; i < tiles; ++i) {
      const Tile part = load(sums(shape[0].block(first + i, wide::kSumLines), all));
      parts.push_back(
          from_fragments(part.reshape({wide::kRows * wide::kSumColumns}), wide::kSumColumns));
    }
    for (int i = 0; i < tiles; ++i) {
      const Block columns = Dim(a.dim).block(at.part * tiles + i, wide::kSumColumns);
      const Tile scaled = parts[static_cast<std::size_t>(i)] * AttentionScores(a).product_scale;
      // What nobody has come to was not written.
      const Tile written = count ? where(*count > 0, scaled, 0) : scaled;
      store(at.rows(dQ, at.block, at.head, columns), in_registers(written.cast(a.dtype), by_rows));
    }
  };
  if (!turns) {
    convert(std::nullopt);
    return kernel;
  }
  const int words = wide_backward_turns(a);
  const Block first_word(kept * words, 1, sequences.kept_blocks(wide::kRows) * words);
  const Tile count = load((*turns)(first_word)).reshape({1, 1});
  if (plan.alone_converts) {
    when(load_index((*turns)(first_word.start())) < kConverted, [&] { convert(count); });
  } else {
    convert(count);
  }
  return kernel;
}
template Kernel wide_query_gradient_of_sums<Batch>(const Attention&, const WideBackwardPlan&,
                                                   const std::string&);
template Kernel wide_query_gradient_of_sums<Packed>(const Attention&, const WideBackwardPlan&,
                                                    const std::string&);

}  // namespace tilewright::kernels
