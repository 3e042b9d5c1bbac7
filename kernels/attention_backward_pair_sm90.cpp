#include "kernels/attention_backward_pair_sm90.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_pair_parts.h"
#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_wide_parts.h"
#include "kernels/attention_backward_wide_sm90.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {
namespace wide {
namespace {

// Registers of a thread: of the warpgroups of dK and dV, and of that of dQ.
constexpr int kMathRegisters = 192, kQueryRegisters = 104;

// Of PairWork's keys, each of two warpgroups has half of the columns of dK and dV. P has the place
// of dS of three steps before, which its readers have read; dS that of P of the step before, which
// both warpgroups have read.
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
        pair_(kernel, a, plan, tiles()),
        p_full_(kernel, kHalves * 128),
        ds_full_(kernel, kHalves * 128) {
    std::vector<RoleSpec> roles = pair_.roles(kQueryRegisters);
    roles.push_back(role("math", warpgroups(kHalves), registers(kMathRegisters),
                         [this](const Index& group) { compute_pairs(group); }));
    kernel.roles(roles);
    kernel.require({no_stack, no_spills});
  }

 private:
  using Sequence = typename Keys::One;

  PairTiles tiles() const {
    const DType dtype = a_.dtype;
    const int rows = kHalves * kRows;
    return {.k = {dtype, rows, half_},
            .v = {dtype, rows, half_v_, SharedMap{.swizzle = panel_ * size_of(dtype)}},
            .q = {dtype, rows, half_},
            .dO = {dtype, rows, half_v_},
            .statistics = 8,
            .row_stages = kRowStages,
            .gradient_stages = 1,
            .has_place_of_queries = false};
  }

  // Columns of V that a warpgroup holds in registers: products of 32 columns whose operands both
  // lie in shared memory want half as much again as it gives. A cap takes registers too.
  static int held_columns(const Attention& a) {
    if (!plan_case("columns of V in registers, of pairs", a.softcap == 0)) return 0;
    return half_of(a.dim) < 128 ? half_of(a.dim_v) : 64;
  }

  // Where P of the `step`-th step lies: dS of that step in the place of P of the step before.
  SharedView p_of(const Index& step) const { return pair_.ds_of(step + 1); }

  void compute_pairs(const Index& group) {
    Cell<Index> step(0);
    pair_.for_pairs([&](const Slot& keys) { compute_pair(group, keys, step); });
    pair_.await_last(pair_.ds_read, step);
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
    const Slot v = pair_.v_ring.consume();
    when(steps > 0, [&] {
      std::optional<Tile> held;
      if (held_columns_ > 0) held = load(half(v[0], 0).columns(0, held_columns_));
      const Slot k = pair_.k_ring.consume();
      KeySums sums{Cell<Pending>(as_pending(Tile(dk))), Cell<Pending>(as_pending(Tile(dv))),
                   Cell<Index>(0)};
      for (Index i : range(steps)) {
        compute_step(group, keys, k, {held, v[0]}, step, sums, i > 0);
        step = step + 1;
      }
      pair_.k_ring.release(k);
      dk = wait(sums.k);
      dv = wait(sums.v);
      pair_.q_ring.release(sums.held);
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
    const Slot rows = pair_.q_ring.consume();
    const Pending products = rows_product(k[0], rows[0], group);
    const Tile l = statistic(rows[1], group);
    const Pending keys_before = sums.k, values_before = sums.v;
    retire(keys_before);
    when(has_before, [&] { pair_.q_ring.release(sums.held); });
    const Tile weights = weights_of(scores_, pair_.sequences,
                                    {group, keys.number(2), rows.number(0), rows.number(1)},
                                    wait(products), l, [&](const Sequence& sequence) {
                                      return PairWork<Keys>::own_keys(sequence, keys.number(0));
                                    });
    // dQ of two steps before has been computed: its warpgroup, and the other CTA, have read dS of
    // three steps before, which had this place.
    when(step > 1, [&] { pair_.ds_read.sync(step % 2); });
    const SharedView p = p_of(step), ds = pair_.ds_of(step);
    store(own_rows(p, group).T(), weights.cast(a_.dtype));
    fence_proxy_async();
    p_full_.sync();
    // dO has one place, and comes late: the exponentials do not wait for it.
    const Slot gradients = pair_.do_ring.consume();
    const Pending value_products = value_product(v, gradients[0], group);
    const Pending values = wgmma(p.T(), half(gradients[0], group), values_before);
    const Tile d = statistic(gradients[1], group);
    const Tile gradient = score_gradient(scores_, weights, wait(value_products), l, d);
    store(own_rows(ds, group).T(), gradient.cast(a_.dtype));
    fence_proxy_async();
    ds_full_.sync();
    pair_.ds_ready.arrive(step % 2);
    sums.k = wgmma(ds.T(), half(rows[0], group), keys_before);
    retire(values);
    pair_.do_ring.release(gradients);
    sums.v = values;
    sums.held = rows.stage();
  }

  // A part of the heads that share keys adds its sums to the others', if there are several.
  void store_pair(const Index& group, const Slot& keys, const Slot& v, const Tile& dk,
                  const Tile& dv) {
    const Sequence sequence = pair_.sequences.of(keys.number(2));
    const Block own = PairWork<Keys>::own_keys(sequence, keys.number(0));
    const SharedSums::Put put_values = [&](const Tile& panel, int column) {
      store_panel(pair_.tensors.dV, a_.dim_v, group, keys, panel, column / panel_, v[0]);
    };
    const SharedSums::Put put_keys = [&](const Tile& panel, int column) {
      store_panel(pair_.tensors.dK, a_.dim, group, keys, panel * scores_.product_scale,
                  column / panel_, v[0]);
    };
    when(own.start() < own.limit(), [&] {
      if (!pair_.tensors.key_sums) {
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
          pair_.sequences.kept_keys(sequence, keys.number(1), keys.number(0), a_.block_k),
          keys.number(5)};
      const Index tile = kHalves * cluster_rank() + group;
      pair_.tensors.key_sums->add(at, tile, /*of_keys=*/false, dv, put_values);
      pair_.tensors.key_sums->add(at, tile, /*of_keys=*/true, dk, put_keys);
    });
    pair_.v_ring.release(v);
  }

  // The `number`-th panel of a warpgroup's half of the columns, each warp its rows, through its
  // part of V's place.
  void store_panel(const Tensor& to, int dim, const Index& group, const Slot& keys,
                   const Tile& panel, int number, const SharedView& through) {
    const int panels = half_of(dim) / panel_, places = half_v_ / panel_;
    if (number >= places) bulk_wait_read(0);
    if (number >= places) warp_sync();
    const SharedView at = half(through, group).columns(number % places * panel_, panel_);
    store(at, panel.cast(a_.dtype));
    fence_proxy_async();
    warp_sync();
    const Block columns = Dim(dim).block(group * panels + number, panel_);
    tma_store(pair_.rows_of(to, keys, columns), at.rows(16 * warp_index(), 16));
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
  PairWork<Keys> pair_;
  NamedBarrier p_full_, ds_full_;
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
  Kernel kernel(name);
  wide::PairBackward<KeysOf<Sequences>>(kernel, a, plan);
  return kernel;
}
template Kernel pair_gradients_sm90<Batch>(const Attention&, const WideBackwardPlan&,
                                           const std::string&);
template Kernel pair_gradients_sm90<Packed>(const Attention&, const WideBackwardPlan&,
                                            const std::string&);

}  // namespace tilewright::kernels
