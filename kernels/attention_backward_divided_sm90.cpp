#include "kernels/attention_backward_divided_sm90.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_pair_parts.h"
#include "kernels/attention_backward_pair_sm90.h"
#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_wide_parts.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {
namespace wide {
namespace {

int full_of(int dim) { return kHalves * half_of(dim); }

// One warpgroup computes S^T = K Q^T and dP^T = V dO^T, 64 keys by 64 queries, and P and dS of
// them. A second one has all of dK and dV, whose products follow each other without a wait for
// anything but P and dS, and a third dQ. So each has its own pace, and no product is computed for
// two.
template <typename Keys>
class DividedBackward {
 public:
  DividedBackward(Kernel& kernel, const Attention& a, const WideBackwardPlan& plan)
      : a_(a),
        // A cap takes registers too.
        holds_all_(plan_case("keys in registers", a.softcap == 0)),
        scores_(a),
        pair_(kernel, a, plan, tiles()),
        p_(kernel, "p", a.dtype, kWeightPlaces * kRows, kRows),
        p_full_(kernel, 2 * 128, kWeightPlaces),
        p_read_(kernel, 2 * 128, kWeightPlaces) {
    std::vector<RoleSpec> roles = pair_.roles(kQueryRegisters);
    roles.push_back(
        role("scores", warpgroups(1), registers(kScoreRegisters), [this] { score_pairs(); }));
    roles.push_back(
        role("gradients", warpgroups(1), registers(kSumRegisters), [this] { sum_pairs(); }));
    kernel.roles(roles);
    kernel.require({no_stack, no_spills});
  }

 private:
  using Pair = PairWork<Keys>;
  static constexpr int kPanel = kDividedPanel;
  static constexpr int kWeightPlaces = 2;  // of P
  // Registers of a thread. dK and dV take 160 of the second kind.
  static constexpr int kScoreRegisters = 208, kSumRegisters = 200, kQueryRegisters = 80;
  using Sequence = typename Keys::One;

  PairTiles tiles() const {
    const DType dtype = a_.dtype;
    return {.k = {dtype, kHalves * kRows, half_of(a_.dim)},
            .v = {dtype, kRows, full_of(a_.dim_v)},
            .q = {dtype, kRows, full_of(a_.dim)},
            .dO = {dtype, kRows, full_of(a_.dim_v)},
            .statistics = 1,
            .row_stages = 3,
            .gradient_stages = 2,
            .has_place_of_queries = true};
  }
  SharedView p_of(const Index& step) const {
    return p_.rows(kRows * (step % kWeightPlaces), kRows);
  }

  void score_pairs() {
    Cell<Index> step(0);
    pair_.for_pairs([&](const Slot& keys) {
      const Index steps = keys.number(3);
      const Slot v = pair_.v_ring.consume();
      when(steps > 0, [&] { score_pair(keys, v, steps, step); });
      pair_.v_ring.release(v);
    });
    Pair::await_last(p_read_, step);
    Pair::await_last(pair_.ds_read, step);
  }

  // An operand's columns from `first` on, in registers or in shared memory.
  struct Part {
    std::optional<Tile> held;
    SharedView shared;
    int first;
  };
  // Of columns from `first` on those before `held` are in registers.
  static void add_parts(std::vector<Part>& parts, const SharedView& keys, int first, int held) {
    const int width = keys.column_count(), own = std::clamp(held - first, 0, width);
    if (own > 0) parts.push_back({load(keys.columns(0, own)), keys.columns(0, own), first});
    if (own == width) return;
    parts.push_back({std::nullopt, keys.columns(own, width - own), first + own});
  }
  static Pending product(const std::vector<Part>& parts, const SharedView& rows) {
    std::optional<Pending> sum;
    for (const Part& part : parts) {
      const SharedView own = rows.columns(part.first, part.shared.column_count()).T();
      if (part.held) {
        sum = sum ? wgmma(*part.held, own, *sum) : wgmma(*part.held, own);
      } else {
        sum = sum ? wgmma(part.shared, own, *sum) : wgmma(part.shared, own);
      }
    }
    return *sum;
  }

  void score_pair(const Slot& keys, const Slot& v, const Index& steps, Cell<Index>& step) {
    std::vector<Part> of_v, of_k;
    add_parts(of_v, v[0], 0, holds_all_ ? full_of(a_.dim_v) : 0);
    const Slot k = pair_.k_ring.consume();
    const int half_dim = half_of(a_.dim), held_k = holds_all_ ? 2 * half_dim : half_dim;
    for (int i = 0; i < kHalves; ++i) add_parts(of_k, half(k[0], i), i * half_dim, held_k);
    const auto begin = [&] { return product(of_k, pair_.q_ring.consume()[0]); };
    Cell<Pending> products(begin());
    // S of the next step is computed beside dS.
    const auto one = [&](bool has_next) {
      const std::optional<Pending> next = score_step(keys, products, of_v, step, [&] {
        return has_next ? std::optional(begin()) : std::nullopt;
      });
      if (next) products = *next;
      step = step + 1;
    };
    for ([[maybe_unused]] Index i : range(1, steps)) one(true);
    one(false);
    pair_.k_ring.release(k);
  }

  template <typename Begin>
  std::optional<Pending> score_step(const Slot& keys, const Pending& products,
                                    const std::vector<Part>& v, const Index& step,
                                    const Begin& begin_next) {
    const Slot rows = pair_.q_ring.last();
    const Index row = rows.number(0), is_cut = rows.number(1);
    const Tile l = load(rows[1].first_row());
    const Tile s = wait(products);
    pair_.q_ring.release(rows);
    const Slot gradients = pair_.do_ring.consume();
    const Tile d = load(gradients[1].first_row());
    const Pending value_products = product(v, gradients[0]);
    const Tile p = weights(keys, row, is_cut, s, l);
    when(step > 1, [&] { p_read_.sync(step % kWeightPlaces); });
    store(p_of(step).T(), p.cast(a_.dtype));
    fence_proxy_async();
    p_full_.arrive(step % kWeightPlaces);
    const std::optional<Pending> next = begin_next();
    const Tile ds = score_gradient(scores_, p, wait(value_products), l, d);
    pair_.do_ring.release(gradients);
    when(step > 1, [&] { pair_.ds_read.sync(step % 2); });
    store(pair_.ds_of(step).T(), ds.cast(a_.dtype));
    fence_proxy_async();
    pair_.ds_ready.arrive(step % 2);
    return next;
  }

  // P^T of a block of rows. Of sequences of one length the mask is the same.
  Tile weights(const Slot& keys, const Index& row, const Index& is_cut, const Tile& products,
               const Tile& l) const {
    Var x{scores_.capped(products) * (scores_.scale * kLog2e) - l};
    when(is_cut > 0, [&] {
      const Tile s = x;
      const Sequence one = pair_.sequences.of(Keys::kOneLength ? Index(0) : keys.number(2));
      x = one.mask.apply_transposed(s, one.queries.block(row, kRows),
                                    Pair::own_keys(one, keys.number(0)));
    });
    return exp2(x);
  }

  void sum_pairs() {
    Cell<Index> step(0);
    pair_.for_pairs([&](const Slot& keys) { sum_pair(keys, step); });
  }

  // The sums of the keys, and the block of rows that the product for dK still reads: it is in
  // flight beside that for dV of the next step.
  struct KeySums {
    Cell<Pending> k, v;
    Cell<Index> held;
  };

  void sum_pair(const Slot& keys, Cell<Index>& step) {
    Var dk{zeros({kRows, full_of(a_.dim)})}, dv{zeros({kRows, full_of(a_.dim_v)})};
    const Index steps = keys.number(3);
    const Slot v = pair_.v_ring.consume();
    when(steps > 0, [&] {
      KeySums sums{Cell<Pending>(as_pending(Tile(dk))), Cell<Pending>(as_pending(Tile(dv))),
                   Cell<Index>(0)};
      for (Index i : range(steps)) {
        sum_step(step, sums, i > 0);
        step = step + 1;
      }
      dk = wait(sums.k);
      dv = wait(sums.v);
      pair_.ds_read.arrive((step + 1) % 2);
      pair_.q_ring.release(sums.held);
    });
    store_pair(keys, v, dk, dv);
  }

  void sum_step(const Index& step, KeySums& sums, const Condition& has_before) {
    p_full_.sync(step % kWeightPlaces);
    const Slot gradients = pair_.do_ring.consume();
    const Pending keys_before = sums.k, values_before = sums.v;
    const Pending values = wgmma(p_of(step).T(), gradients[0], values_before);
    retire(keys_before);
    when(has_before, [&] {
      pair_.ds_read.arrive((step + 1) % 2);
      pair_.q_ring.release(sums.held);
    });
    pair_.ds_ready.sync(step % 2);
    const Slot rows = pair_.q_ring.consume();
    sums.k = wgmma(pair_.ds_of(step).T(), rows[0], keys_before);
    retire(values);
    p_read_.arrive(step % kWeightPlaces);
    pair_.do_ring.release(gradients);
    sums.v = values;
    sums.held = rows.stage();
  }

  // A part of the heads that share keys adds its sums to the others', if there are several.
  void store_pair(const Slot& keys, const Slot& v, const Tile& dk, const Tile& dv) {
    const Sequence sequence = pair_.sequences.of(keys.number(2));
    const Block own = Pair::own_keys(sequence, keys.number(0));
    const SharedSums::Put put_values = [&](const Tile& panel, int column) {
      store_panel(pair_.tensors.dV, a_.dim_v, keys, panel, column / kPanel, v[0]);
    };
    const SharedSums::Put put_keys = [&](const Tile& panel, int column) {
      store_panel(pair_.tensors.dK, a_.dim, keys, panel * scores_.product_scale, column / kPanel,
                  v[0]);
    };
    when(own.start() < own.limit(), [&] {
      if (const auto& shared = pair_.tensors.key_sums) {
        const Index number =
            pair_.sequences.kept_keys(sequence, keys.number(1), keys.number(0), a_.block_k);
        const SharedSums::Place at = {number, keys.number(5)};
        shared->add(at, cluster_rank(), /*of_keys=*/false, dv, put_values);
        shared->add(at, cluster_rank(), /*of_keys=*/true, dk, put_keys);
        return;
      }
      for_panels(dv, full_of(a_.dim_v), put_values);
      for_panels(dk, full_of(a_.dim), put_keys);
    });
    pair_.v_ring.release(v);
  }
  static void for_panels(const Tile& tile, int columns, const SharedSums::Put& put) {
    for (int column = 0; column < columns; column += kPanel) {
      put(tile.slice({0, column}, {kRows, kPanel}), column);
    }
  }

  // The `number`-th panel of the columns, each warp its rows, through V's place.
  void store_panel(const Tensor& to, int dim, const Slot& keys, const Tile& panel, int number,
                   const SharedView& through) {
    const int panels = full_of(dim) / kPanel, places = full_of(a_.dim_v) / kPanel;
    if (number >= places) bulk_wait_read(0);
    if (number >= places) warp_sync();
    const SharedView at = through.columns(number % places * kPanel, kPanel);
    store(at, panel.cast(a_.dtype));
    fence_proxy_async();
    warp_sync();
    tma_store(pair_.rows_of(to, keys, Dim(dim).block(number, kPanel)),
              at.rows(16 * warp_index(), 16));
    bulk_commit();
    if (number + 1 < panels) return;
    bulk_wait_read(0);
    warp_sync();
  }

  const Attention& a_;
  const bool holds_all_;  // K and V, in registers of the warpgroup that computes scores
  AttentionScores scores_;
  PairWork<Keys> pair_;
  SharedTile p_;
  NamedBarrier p_full_, p_read_;
};

}  // namespace
}  // namespace wide

bool is_divided_backward(const Attention& a) {
  return is_paired_backward(a) && wide::full_of(a.dim) <= 192 && wide::full_of(a.dim_v) <= 128;
}

template <typename Sequences>
Kernel divided_gradients_sm90(const Attention& a, const WideBackwardPlan& plan,
                              const std::string& name) {
  Kernel kernel(name);
  wide::DividedBackward<KeysOf<Sequences>>(kernel, a, plan);
  return kernel;
}
template Kernel divided_gradients_sm90<Batch>(const Attention&, const WideBackwardPlan&,
                                              const std::string&);
template Kernel divided_gradients_sm90<Packed>(const Attention&, const WideBackwardPlan&,
                                               const std::string&);

}  // namespace tilewright::kernels
