#include "kernels/attention_backward_pair_sm90.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_backward_wide_parts.h"
#include "kernels/attention_backward_wide_sm90.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {
namespace wide {
namespace {

// Places for P and dS in turns. P of a step has the place of dS three steps before, which its
// readers have read; dS that of P of the step before, which both warpgroups have read.
constexpr int kPlaces = 4;
constexpr int kRowNumbers = 4;  // blocks of rows ahead of dQ
// Registers of a thread: of the warpgroups of dK and dV, and of that of dQ.
constexpr int kMathRegisters = 192, kQueryRegisters = 104;

// The two CTAs of a cluster have adjacent blocks of 64 keys and go through the same blocks of
// queries. Each sends its dS to the other one, and sums half of the columns of dQ over the keys of
// both, so that it adds half as much to memory. A warpgroup of its own does so: a warp that adds
// waits for memory, and those of dK and dV go on meanwhile.
template <typename Keys>
class PairBackward {
 public:
  PairBackward(Kernel& kernel, const Attention& a, const WideBackwardPlan& plan)
      : a_(a),
        half_(half_of(a.dim)),
        half_v_(half_of(a.dim_v)),
        panel_(paired_panel(a)),
        held_columns_(held_columns(a)),
        scores_(a),
        sequences_(kernel, a, plan.ordered, parts_of(kernel, plan), /*ctas=*/2),
        tensors_(kernel, a, sequences_, plan),
        pairs_(kernel, sequences_.count()),
        key_ring_(kernel, "keys", stages(2), std::vector<TileShape>{}),
        k_ring_(kernel, "k", stages(1), {{a.dtype, kHalves * kRows, half_}}),
        v_ring_(
            kernel, "v", stages(1),
            {{a.dtype, kHalves * kRows, half_v_, SharedMap{.swizzle = panel_ * size_of(a.dtype)}}}),
        other_k_ring_(kernel, "other_k", stages(1), {{a.dtype, kRows, half_}}),
        row_ring_(kernel, "rows", stages(kRowNumbers), std::vector<TileShape>{}),
        q_ring_(kernel, "q", stages(kRowStages),
                {{a.dtype, kHalves * kRows, half_}, {f32, 8, kRows}}),
        do_ring_(kernel, "do", stages(1), {{a.dtype, kHalves * kRows, half_v_}, {f32, 8, kRows}}),
        other_ds_ring_(kernel, "other_ds", stages(1), {{a.dtype, kRows, kRows}}),
        p_ds_(kernel, "p_ds", a.dtype, kPlaces * kRows, kRows),
        p_full_(kernel, kMathThreads),
        ds_full_(kernel, kMathThreads),
        ds_ready_(kernel, kMathThreads + kQueryThreads + 32, 2),
        ds_read_(kernel, kMathThreads + kQueryThreads, 2) {
    key_ring_.numbered(kKeyNumbers);
    row_ring_.numbered(2);
    q_ring_.numbered(2);
    other_ds_ring_.multicast();
    kernel.ctas(pairs_.ctas(), 2);
    const RegisterBudget few = registers(24);
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_pairs(); }),
                                   role("send", warps(1), few, [this] { send(); })};
    if (plan_case("paired dQ in order", plan.ordered)) {
      turns_.emplace(kernel, "turn", *tensors_.turns, kQueryThreads);
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      roles.push_back(role("end_turns", warps(1), few, [this] { end_turns(); }));
    }
    roles.push_back(
        role("queries", warpgroups(1), registers(kQueryRegisters), [this] { sum_queries(); }));
    roles.push_back(role("math", warpgroups(kHalves), registers(kMathRegisters),
                         [this](const Index& group) { compute_pairs(group); }));
    kernel.roles(roles);
    kernel.require({no_stack, no_spills});
  }

 private:
  using Sequence = typename Keys::One;
  static constexpr int kMathThreads = kHalves * 128, kQueryThreads = 128;

  // Columns of V that a warpgroup holds in registers: products of 32 columns whose operands both
  // lie in shared memory want half as much again as it gives. A cap takes registers too.
  static int held_columns(const Attention& a) {
    if (!plan_case("columns of V in registers, of pairs", a.softcap == 0)) return 0;
    return half_of(a.dim) < 128 ? half_of(a.dim_v) : 64;
  }

  static Block own_keys(const Sequence& sequence, const Index& pair) {
    return sequence.keys.block(pair * 2 + cluster_rank(), kRows);
  }
  // Of one of the two CTAs, to load. Instead of a block that does not exist, whose scores the mask
  // hides, the last one.
  static Block loaded_keys(const Sequence& sequence, const Index& pair, const Index& rank) {
    const Index last = max(sequence.keys.blocks(kRows) - 1, 0);
    return sequence.keys.block(min(pair * 2 + rank, last), kRows);
  }

  void load_pairs() {
    pairs_.hand_out([&](const Index& number) {
      const KeyPlace at = sequences_.place(number);
      const Sequence sequence = sequences_.of(at.sequence);
      const Block cols = sequence.keys.block(at.block, 2 * kRows);
      const auto load = [&] { load_pair(at, sequence, cols); };
      if constexpr (Keys::kOneLength) {
        load();
      } else {
        when(cols.start() < cols.limit(), load);
      }
    });
    key_ring_.produce(no_keys(kEndOfKeys, 0));
  }

  // The numbers of a pair's keys say where they are, and how many blocks of rows follow: those that
  // see something of either block, of all heads that share the keys, in the order of for_rows.
  void load_pair(const KeyPlace& at, const Sequence& sequence, const Block& cols) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, kRows);
    const auto [whole_first, whole_last] = sequence.mask.full_rows(cols, sequence.queries, kRows);
    const Members members = members_of(tensors_, sequences_.parts(), at);
    const Index of_head = last - first, steps = of_head * members.count;
    const auto load_step = [&](const Index& i) {
      const RowStep step = row_step(at.way, of_head, members.count, i);
      const Index row = first + step.row, head = members.first + step.member;
      load_queries(sequence, row, head, select(row >= whole_first && row < whole_last, 0, 1));
      return std::pair(row, head);
    };
    const Block own = loaded_keys(sequence, at.block, cluster_rank());
    const Block other = loaded_keys(sequence, at.block, 1 - cluster_rank());
    key_ring_.produce(key_numbers(at, steps));
    // In the order in which the last step of the keys before leaves room.
    when(steps > 0, [&] { load_step(0); });
    v_ring_.produce([&](const Slot& v) {
      load_halves(sequence, tensors_.V, own, at.kv_head, a_.dim_v, v[0], kOfKeys);
    });
    when(steps > 0, [&] {
      const Index row = select(is(at.way, Way::rows_down), last - 1, first);
      load_gradients(sequence, row, members.first);
      k_ring_.produce([&](const Slot& k) {
        load_halves(sequence, tensors_.K, own, at.kv_head, a_.dim, k[0], kOfKeys);
      });
      other_k_ring_.produce([&](const Slot& k) {
        const Block columns = Dim(a_.dim).block(cluster_rank(), half_);
        tma_load(sequence.rows(tensors_.K, other, at.kv_head, columns), k[0], kOfKeys);
      });
    });
    for (Index i : range(1, steps)) {
      const auto [row, head] = load_step(i);
      load_gradients(sequence, row, head);
    }
  }

  // Each block of rows has its number, that among all that are kept, and whether a mask cuts it.
  void load_queries(const Sequence& sequence, const Index& row, const Index& head,
                    const Index& is_cut) {
    row_ring_.produce({row, sequences_.kept_number(sequence, head, row, kRows)});
    q_ring_.produce({row, is_cut}, [&](const Slot& slot) {
      load_halves(sequence, tensors_.Q, sequence.queries.block(row, kRows), head, a_.dim, slot[0],
                  kOfRows);
      tma_load(statistics_of(sequence, tensors_.L, row, head), slot[1].first_row());
    });
  }
  void load_gradients(const Sequence& sequence, const Index& row, const Index& head) {
    do_ring_.produce([&](const Slot& slot) {
      load_halves(sequence, tensors_.dO, sequence.queries.block(row, kRows), head, a_.dim_v,
                  slot[0], kOfRows);
      tma_load(statistics_of(sequence, tensors_.D, row, head), slot[1].first_row());
    });
  }
  TensorView statistics_of(const Sequence& sequence, const Tensor& tensor, const Index& row,
                           const Index& head) const {
    const Block rows = sequences_.of_rows(kRows).back().block(sequence.kept_number(row), kRows);
    return sequence.kept_block(tensor, rows, Dim(a_.heads).block(head, 1));
  }

  // Where P of the `step`-th step lies, and dS of that step: in the place of P of the step before.
  SharedView p_of(const Index& step) const {
    return p_ds_.rows(kRows * ((step + 1) % kPlaces), kRows);
  }
  SharedView ds_of(const Index& step) const { return p_ds_.rows(kRows * (step % kPlaces), kRows); }

  void send() {
    Cell<Index> step(0);
    for_key_blocks(key_ring_, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) {
        ds_ready_.sync(step % 2);
        other_ds_ring_.produce(
            [&](const Slot& slot) { cluster_copy(ds_of(step), slot, 1 - cluster_rank()); });
        step = step + 1;
      }
    });
  }

  void await_turns() {
    for_key_blocks(key_ring_, [&](const KeyPlace& at, const Index& steps) {
      const Sequence sequence = sequences_.of(at.sequence);
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = row_ring_.consume();
        const Index row = slot.number(0), sum = slot.number(1) * kHalves + cluster_rank();
        row_ring_.release(slot);
        turns_->await(sum, turn_of(a_, sequence, at, row));
      }
    });
  }
  void end_turns() {
    for_key_blocks(key_ring_, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) turns_->hand_on();
    });
  }

  void sum_queries() {
    Cell<Index> step(0);
    for_key_blocks(key_ring_, [&](const KeyPlace&, const Index& steps) {
      when(steps > 0, [&] { sum_pair(steps, step); });
    });
  }

  void sum_pair(const Index& steps, Cell<Index>& step) {
    const Slot k = k_ring_.consume(), other_k = other_k_ring_.consume();
    const SharedView columns = half(k[0], cluster_rank());
    for ([[maybe_unused]] Index i : range(steps)) {
      ds_ready_.sync(step % 2);
      const Slot other = other_ds_ring_.consume();
      const Tile dq = wait(wgmma(other[0], other_k[0], wgmma(ds_of(step), columns)));
      other_ds_ring_.release(other);
      ds_read_.arrive(step % 2);
      add(dq);
      step = step + 1;
    }
    k_ring_.release(k);
    other_k_ring_.release(other_k);
  }

  // To this CTA's half of the columns of a block of rows; in order, in the pair's turn.
  void add(const Tile& dq) {
    if (turns_) {
      const Turns::Turn turn = turns_->begin();
      add_to(turn.sum() / kHalves, dq, turn);
      turns_->end(turn);
      return;
    }
    const Slot slot = row_ring_.consume();
    const Index rows = slot.number(1);
    row_ring_.release(slot);
    add_to(rows, dq, std::nullopt);
  }
  void add_to(const Index& rows, const Tile& dq, const std::optional<Turns::Turn>& turn) const {
    const Dim lines = wide_backward_sums(a_, sequences_.kept_blocks(kRows))[0];
    const Index tile = rows * sum_tiles(a_) + cluster_rank() * (half_ / kSumColumns);
    add_to_sums(tensors_.sums, lines, tile, dq, turn);
  }

  void compute_pairs(const Index& group) {
    Cell<Condition> more(true);
    Cell<Index> step(0);
    repeat_while(more, [&] {
      const Slot keys = key_ring_.consume();
      const Condition is_pair = keys.number() >= 0;
      when(is_pair, [&] { compute_pair(group, keys, step); });
      more = is_pair;
      key_ring_.release(keys);
    });
    // What the warpgroup of dQ has arrived at and nobody has waited for.
    when(step > 1, [&] { ds_read_.sync(step % 2); });
    when(step > 0, [&] { ds_read_.sync((step + 1) % 2); });
  }

  // The sums of the keys, and the block of rows that the product for dK still reads: it is in
  // flight beside the scores of the next step.
  struct KeySums {
    Cell<Pending> k, v;
    Cell<Index> held;
  };

  void compute_pair(const Index& group, const Slot& keys, Cell<Index>& step) {
    Var dk{zeros({kRows, half_})}, dv{zeros({kRows, half_v_})};
    const Index steps = keys.number(3);
    const Slot v = v_ring_.consume();
    when(steps > 0, [&] {
      std::optional<Tile> held;
      if (held_columns_ > 0) held = load(half(v[0], 0).columns(0, held_columns_));
      const Slot k = k_ring_.consume();
      KeySums sums{Cell<Pending>(as_pending(Tile(dk))), Cell<Pending>(as_pending(Tile(dv))),
                   Cell<Index>(0)};
      for (Index i : range(steps)) {
        compute_step(group, keys, k, {held, v[0]}, step, sums, i > 0);
        step = step + 1;
      }
      k_ring_.release(k);
      dk = wait(sums.k);
      dv = wait(sums.v);
      q_ring_.release(sums.held);
    });
    store_pair(group, keys, v, dk, dv);
  }

  struct Values {
    std::optional<Tile> held;
    SharedView all;
  };
  // dP^T = V dO^T, of a warpgroup's rows.
  Pending value_product(const Values& v, const SharedView& gradients, const Index& group) const {
    if (!v.held) return rows_product(v.all, gradients, group);
    const SharedView first = own_rows(half(gradients, 0), group);
    Pending sum = wgmma(*v.held, first.columns(0, held_columns_).T());
    if (const int rest = half_v_ - held_columns_; rest > 0) {
      sum = wgmma(half(v.all, 0).columns(held_columns_, rest),
                  first.columns(held_columns_, rest).T(), sum);
    }
    return wgmma(half(v.all, 1), own_rows(half(gradients, 1), group).T(), sum);
  }

  void compute_step(const Index& group, const Slot& keys, const Slot& k, const Values& v,
                    const Index& step, KeySums& sums, const Condition& has_before) {
    const Slot rows = q_ring_.consume();
    const Pending products = rows_product(k[0], rows[0], group);
    const Tile l = statistic(rows[1], group);
    const Pending keys_before = sums.k, values_before = sums.v;
    retire(keys_before);
    when(has_before, [&] { q_ring_.release(sums.held); });
    const Tile weights =
        weights_of(scores_, sequences_, {group, keys.number(2), rows.number(0), rows.number(1)},
                   wait(products), l,
                   [&](const Sequence& sequence) { return own_keys(sequence, keys.number(0)); });
    // dQ of two steps before has been computed: its warpgroup, and the other CTA, have read dS of
    // three steps before, which had this place.
    when(step > 1, [&] { ds_read_.sync(step % 2); });
    const SharedView p = p_of(step), ds = ds_of(step);
    store(own_rows(p, group).T(), weights.cast(a_.dtype));
    fence_proxy_async();
    p_full_.sync();
    // dO has one place, and comes late: the exponentials do not wait for it.
    const Slot gradients = do_ring_.consume();
    const Pending value_products = value_product(v, gradients[0], group);
    const Pending values = wgmma(p.T(), half(gradients[0], group), values_before);
    const Tile d = statistic(gradients[1], group);
    const Tile gradient = score_gradient(scores_, weights, wait(value_products), l, d);
    store(own_rows(ds, group).T(), gradient.cast(a_.dtype));
    fence_proxy_async();
    ds_full_.sync();
    ds_ready_.arrive(step % 2);
    sums.k = wgmma(ds.T(), half(rows[0], group), keys_before);
    retire(values);
    do_ring_.release(gradients);
    sums.v = values;
    sums.held = rows.stage();
  }

  // A part of the heads that share keys adds its sums to the others', if there are several.
  void store_pair(const Index& group, const Slot& keys, const Slot& v, const Tile& dk,
                  const Tile& dv) {
    const Sequence sequence = sequences_.of(keys.number(2));
    const Block own = own_keys(sequence, keys.number(0));
    const SharedSums::Put put_values = [&](const Tile& panel, int column) {
      store_panel(tensors_.dV, a_.dim_v, group, keys, panel, column / panel_, v[0]);
    };
    const SharedSums::Put put_keys = [&](const Tile& panel, int column) {
      store_panel(tensors_.dK, a_.dim, group, keys, panel * scores_.product_scale, column / panel_,
                  v[0]);
    };
    when(own.start() < own.limit(), [&] {
      if (!tensors_.key_sums) {
        const auto panels = [this](const Tile& tile, int columns, const SharedSums::Put& put) {
          for (int column = 0; column < columns; column += panel_) {
            put(tile.slice({0, column}, {kRows, panel_}), column);
          }
        };
        panels(dv, half_v_, put_values);
        panels(dk, half_, put_keys);
        return;
      }
      const SharedSums::Place at = {
          sequences_.kept_keys(sequence, keys.number(1), keys.number(0), a_.block_k),
          keys.number(5)};
      const Index tile = kHalves * cluster_rank() + group;
      tensors_.key_sums->add(at, tile, /*of_keys=*/false, dv, put_values);
      tensors_.key_sums->add(at, tile, /*of_keys=*/true, dk, put_keys);
    });
    v_ring_.release(v);
  }

  // The `number`-th panel of a warpgroup's half of the columns, each warp its rows, through its
  // part of V's place.
  void store_panel(const Tensor& to, int dim, const Index& group, const Slot& keys,
                   const Tile& panel, int number, const SharedView& through) {
    const Index pair = keys.number(0), kv_head = keys.number(1);
    const Sequence sequence = sequences_.of(keys.number(2));
    const Block rows = own_keys(sequence, pair).part(warp_index(), 16);
    const int panels = half_of(dim) / panel_, places = half_v_ / panel_;
    if (number >= places) bulk_wait_read(0);
    if (number >= places) warp_sync();
    const SharedView at = half(through, group).columns(number % places * panel_, panel_);
    store(at, panel.cast(a_.dtype));
    fence_proxy_async();
    warp_sync();
    const Block columns = Dim(dim).block(group * panels + number, panel_);
    tma_store(sequence.rows(to, rows, kv_head, columns), at.rows(16 * warp_index(), 16));
    bulk_commit();
    if (number + 1 < panels) return;
    bulk_wait_read(0);
    warp_sync();
  }

  const Attention& a_;
  const int half_, half_v_;
  const int panel_;  // columns of V's panels, through which outputs pass
  const int held_columns_;
  AttentionScores scores_;
  Keys sequences_;
  Tensors<Keys> tensors_;
  PairsOfCtas pairs_;
  Ring key_ring_, k_ring_, v_ring_, other_k_ring_, row_ring_, q_ring_, do_ring_, other_ds_ring_;
  SharedTile p_ds_;
  NamedBarrier p_full_, ds_full_, ds_ready_, ds_read_;
  std::optional<Turns> turns_;  // in order
};

}  // namespace
}  // namespace wide

bool is_paired_backward(const Attention& a) {
  return wide::half_of(a.dim) >= 96 && wide::half_of(a.dim_v) >= 64;
}

int paired_panel(const Attention& a) {
  const bool has_wide_panels = (wide::half_of(a.dim) | wide::half_of(a.dim_v)) % 64 == 0;
  return plan_case("panels of 64 columns in pairs", has_wide_panels) ? 64 : 32;
}

template <typename Sequences>
Kernel pair_gradients_sm90(const Attention& a, const WideBackwardPlan& plan,
                           const std::string& name) {
  using Keys = std::conditional_t<std::is_same_v<Sequences, Batch>, BatchKeys, PackedKeys>;
  Kernel kernel(name);
  wide::PairBackward<Keys>(kernel, a, plan);
  return kernel;
}
template Kernel pair_gradients_sm90<Batch>(const Attention&, const WideBackwardPlan&,
                                           const std::string&);
template Kernel pair_gradients_sm90<Packed>(const Attention&, const WideBackwardPlan&,
                                            const std::string&);

}  // namespace tilewright::kernels
