#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_summed.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// dQ in order: sums that are complete, converted by the warpgroups behind each block of keys. It
// passes through the place of dS, which no product reads then.
template <typename Keys>
class QueryGradients {
 public:
  using Rows = typename Summed<Keys>::Rows;

  // `ds`: in each group's columns 64 rows for each panel of 64 columns.
  QueryGradients(Kernel& kernel, const Attention& a, const BackwardPlan& plan,
                 const Keys& sequences, const Tensor& words, const Tensor& sums, const Tensor& dQ,
                 const SharedTile& ds)
      : a_(a),
        plan_(plan),
        sequences_(sequences),
        summed_(kernel, a, sequences, words,
                {sums, plan.sums(a, sequences.kept_blocks(a.block_q))[0], plan.tiles(a),
                 plan.tile_lines(a)},
                kGroups),
        dQ_(dQ),
        ds_(ds),
        own_(kernel, 128, kGroups) {}

  void give_all(Ring& keys) { summed_.give_all(keys); }

  const Summed<Keys>& summed() const { return summed_; }
  // The first of them, whose sums are on their way from here on.
  void next(const Index& group, Rows& rows) { summed_.next(group, rows); }

  // Before the first of all. A copy reads whole panels, of columns that do not exist too.
  void clear(const Index& group) const {
    if (a_.dim % kColumnsOfPanel == 0) return;
    for (int i = 0; i < std::max(panels_of(a_.dim), plan_.tiles(a_)); ++i) {
      store(staged(group, i), zeros({kGroupRows, kColumnsOfPanel}).cast(a_.dtype));
    }
  }
  // Behind all copies of the group's warps: what they have read is dS's place again.
  void meet(const Index& group) { own_.sync(group); }

  // The blocks of rows up to their end.
  void convert(const Index& group, Rows& rows) {
    Cell<Condition> has_before(false);
    summed_.convert(group, rows,
                    [&](const std::vector<Tile>& sums, const Index& number, const Index& head,
                        const Index& sequence) {
                      when(has_before, [&] {
                        bulk_wait_read(0);
                        meet_copiers(group);
                      });
                      put(group, panels(sums, number, head, sequence));
                      has_before = true;
                    });
  }

 private:
  // What a warpgroup has of a panel, and where a warp's 16 rows of it go.
  struct Panel {
    Tile tile;
    TensorView to;
  };
  std::vector<Panel> panels(const std::vector<Tile>& sums, const Index& number, const Index& head,
                            const Index& of_sequence) const {
    const typename Keys::One sequence = sequences_.of(of_sequence);
    const Block rows = sequence.queries.block(number, a_.block_q);
    std::vector<Panel> panels;
    for (std::size_t part = 0; part < sums.size(); ++part) {
      const int number_of_part = static_cast<int>(part);
      const Tile dq = (sums[part] * AttentionScores(a_).product_scale).cast(a_.dtype);
      const int columns = static_cast<int>(dq.shape()[1]);
      const Index first_row = plan_.by_columns ? 0 : 4 * number_of_part;
      const Block own = rows.part(first_row + warp_index(), 16);
      for (int i = 0; i < panels_of(columns); ++i) {
        const int first = kColumnsOfPanel * i, width = std::min(columns - first, kColumnsOfPanel);
        const Block of_dim =
            Dim(a_.dim).block(plan_.by_columns ? number_of_part : i, kColumnsOfPanel);
        panels.push_back(
            {dq.slice({0, first}, {kGroupRows, width}), sequence.rows(dQ_, own, head, of_dim)});
      }
    }
    return panels;
  }

  void put(const Index& group, const std::vector<Panel>& panels) {
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const Tile& tile = panels[i].tile;
      const SharedView panel =
          staged(group, static_cast<int>(i)).columns(0, static_cast<int>(tile.shape()[1]));
      store(plan_.transposed ? panel.T() : panel, tile);
    }
    fence_proxy_async();
    meet_copiers(group);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      tma_store(panels[i].to, staged(group, static_cast<int>(i)).rows(16 * warp_index(), 16));
    }
    bulk_commit();
  }
  // Transposed, columns become rows that other warps copy.
  void meet_copiers(const Index& group) {
    if (plan_.transposed) {
      meet(group);
    } else {
      warp_sync();
    }
  }
  // 64 rows of a warpgroup: the stages of dS have 128 rows or more.
  SharedView staged(const Index& group, int panel) const {
    return ds_.rows(kGroupRows * panel, kGroupRows).column_part(group, kColumnsOfPanel);
  }

  const Attention& a_;
  const BackwardPlan& plan_;
  const Keys& sequences_;
  Summed<Keys> summed_;
  Tensor dQ_;
  SharedView ds_;
  NamedBarrier own_;  // of a warpgroup
};

}  // namespace tilewright::kernels
