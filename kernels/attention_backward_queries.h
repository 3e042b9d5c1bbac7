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

// Where dS lies, a group's panel of 64 rows: in its own columns. Outputs pass through it.
inline SharedView panel_of(const SharedView& ds, const Index& group, const Index& panel) {
  return ds.rows(kGroupRows * panel, kGroupRows).column_part(group, kColumnsOfPanel);
}

// dQ in order: sums that are complete, converted by the warpgroups behind each block of keys. It
// passes through the place of dS, which no product reads then.
template <typename Keys>
class QueryGradients {
 public:
  // `ds`: in each group's columns 64 rows for each panel of 64 columns. `own`: barriers of a group.
  QueryGradients(Kernel& kernel, const Attention& a, const BackwardPlan& plan,
                 const Keys& sequences, const Tensor& words, const Tensor& sums, const Tensor& dQ,
                 const SharedTile& ds, NamedBarrier& own)
      : a_(a),
        plan_(plan),
        sequences_(sequences),
        summed_(kernel, a, sequences, words,
                {sums, plan.sums(a, sequences.kept_blocks(a.block_q))[0], plan.tiles(a),
                 plan.tile_lines(a)},
                kGroups),
        dQ_(dQ),
        ds_(ds),
        own_(own) {}

  void give_all(Ring& keys) { summed_.give_all(keys); }

  // The blocks of rows up to their end. Before each what was copied from its place has left.
  void convert(const Index& group) {
    summed_.convert(group, [&](const std::vector<Tile>& sums, const SummedRows& rows) {
      bulk_wait_read(0);
      meet_copiers(group);
      put(group, panels(sums, rows));
    });
  }

 private:
  // What a warpgroup has of a panel, and where a warp's 16 rows of it go.
  struct Panel {
    Tile tile;
    TensorView to;
  };
  std::vector<Panel> panels(const std::vector<Tile>& sums, const SummedRows& summed) const {
    const typename Keys::One sequence = sequences_.of(summed.sequence);
    const Block rows = sequence.queries.block(summed.number, a_.block_q);
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
        panels.push_back({dq.slice({0, first}, {kGroupRows, width}),
                          sequence.rows(dQ_, own, summed.head, of_dim)});
      }
    }
    return panels;
  }

  void put(const Index& group, const std::vector<Panel>& panels) {
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const Tile& tile = panels[i].tile;
      const SharedView panel =
          panel_of(ds_, group, static_cast<int>(i)).columns(0, static_cast<int>(tile.shape()[1]));
      store(plan_.transposed ? panel.T() : panel, tile);
    }
    fence_proxy_async();
    meet_copiers(group);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      tma_store(panels[i].to,
                panel_of(ds_, group, static_cast<int>(i)).rows(16 * warp_index(), 16));
    }
    bulk_commit();
  }
  // Transposed, columns become rows that other warps copy.
  void meet_copiers(const Index& group) {
    if (plan_.transposed) {
      own_.sync(group);
    } else {
      warp_sync();
    }
  }
  const Attention& a_;
  const BackwardPlan& plan_;
  const Keys& sequences_;
  Summed<Keys> summed_;
  Tensor dQ_;
  SharedView ds_;
  NamedBarrier& own_;
};

}  // namespace tilewright::kernels
