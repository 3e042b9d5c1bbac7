#pragma once

#include <algorithm>
#include <optional>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_queries.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_parameters.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// Where dK and dV of a block of keys go. It is read behind the steps: the registers are theirs.
struct KeyOutputs {
  Cell<Index> block{0}, kv_head{0}, sequence{0}, part{0};
  void read(const KeyPlace& at) {
    block = at.block;
    kv_head = at.kv_head;
    sequence = at.sequence;
    part = at.part;
  }
};

// dK and dV on their way out of the registers of the warpgroups. They pass through places that no
// product reads: before the last product of dQ has ended, that is not the place of its dS. A warp
// copies the 16 rows that it has stored.
template <typename Keys>
class StoredKeyGradients {
 public:
  // `ds`: two stages of dS.
  StoredKeyGradients(Kernel& kernel, const Attention& a, const BackwardPlan& plan,
                     const Keys& sequences, const Tensor& dK, const Tensor& dV,
                     const SharedTile& ds)
      : a_(a), sequences_(sequences), dK_(dK), dV_(dV), ds_(ds) {
    if (plan.values_apart) {
      panels_out_ = panels_of(a.dim_v);
      if (plan.last_converts)
        panels_out_ = std::max(panels_out_, plan.by_columns ? 1 : panels_of(a.dim));
      values_out_.emplace(kernel, "dv_out", a.dtype, a.block_k, kColumnsOfPanel * panels_out_,
                          here());
    }
  }

  // `stage`: of the last dS.
  void put_values(const Index& group, const KeyOutputs& to, const Index& stage,
                  const Tile& dv) const {
    put(group, to, dV_, dv, [&](int panel) { return values_panel(group, stage, panel); });
  }
  void put_keys(const Index& group, const KeyOutputs& to, const Tile& dk) const {
    put(group, to, dK_, dk * AttentionScores(a_).product_scale,
        [&](int panel) { return panel_of(ds_, group, panel); });
  }

  // Before the first of all. A copy reads whole panels, of columns that do not exist too.
  void clear(const Index& group) const {
    const Tile none = zeros({kGroupRows, kColumnsOfPanel}).cast(a_.dtype);
    const auto has_none = [](int dim) { return dim % kColumnsOfPanel != 0; };
    if (has_none(a_.dim) || (has_none(a_.dim_v) && !values_out_)) {
      for (int i = 0; i < kScoreStages * a_.block_q / kGroupRows; ++i) {
        store(panel_of(ds_, group, i), none);
      }
    }
    if (values_out_ && (has_none(a_.dim_v) || has_none(a_.dim))) {
      for (int i = 0; i < panels_out_; ++i) store(values_panel(group, 0, i), none);
    }
  }
  // A place of dV's own, through which dQ may leave while there is no dV.
  SharedView panel_apart(const Index& group, int panel) const {
    return values_panel(group, 0, panel);
  }

 private:
  // Without a place of its own dV has one panel, in the second half of the other stage of dS.
  SharedView values_panel(const Index& group, const Index& stage, int panel) const {
    if (!values_out_) return panel_of(ds_, group, 2 * (1 - stage) + 1);
    return values_out_->rows(kGroupRows * group, kGroupRows)
        .columns(kColumnsOfPanel * panel, kColumnsOfPanel);
  }
  void put(const Index& group, const KeyOutputs& at, const Tensor& to, const Tile& tile,
           FunctionRef<SharedView(int panel)> through) const {
    const typename Keys::One sequence = sequences_.of(at.sequence);
    const Block keys = sequence.keys.block(at.block, a_.block_k).part(4 * group + warp_index(), 16);
    const int dim = static_cast<int>(tile.shape()[1]);
    const Tile rounded = tile.cast(a_.dtype);
    for (int i = 0; i < panels_of(dim); ++i) {
      const int first = kColumnsOfPanel * i, width = std::min(dim - first, kColumnsOfPanel);
      store(through(i).columns(0, width), rounded.slice({0, first}, {kGroupRows, width}));
    }
    fence_proxy_async();
    warp_sync();
    for (int i = 0; i < panels_of(dim); ++i) {
      tma_store(
          sequences_.key_output(sequence, to, keys, at.kv_head, Dim(dim).block(i, kColumnsOfPanel)),
          through(i).rows(16 * warp_index(), 16));
    }
    bulk_commit();
  }

  const Attention& a_;
  const Keys& sequences_;
  Tensor dK_, dV_;
  SharedView ds_;
  int panels_out_ = 0;
  std::optional<SharedTile> values_out_;
};

}  // namespace tilewright::kernels
