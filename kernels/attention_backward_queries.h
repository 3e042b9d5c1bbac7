#pragma once

#include <algorithm>
#include <functional>
#include <utility>
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

// dQ on its way from sums to memory, through panels of 64 rows and columns of shared memory.
template <typename Keys>
class StoredQueryGradients {
 public:
  // `panel`: where a group's panels lie. `own`: barriers of a group.
  StoredQueryGradients(const Attention& a, const BackwardPlan& plan, const Keys& sequences,
                       const Tensor& dQ, NamedBarrier& own,
                       std::function<SharedView(const Index& group, int panel)> panel)
      : a_(a), plan_(plan), sequences_(sequences), dQ_(dQ), own_(own), panel_(std::move(panel)) {}

  // A sum and which part of a block of rows it is.
  struct Part {
    Tile sum;
    Index number;
  };
  // By a warpgroup. What was copied from its panels has left first.
  void put(const Index& group, const std::vector<Part>& parts, const SummedRows& rows) const {
    bulk_wait_read(0);
    meet_copiers(group);
    const std::vector<Panel> panels = this->panels(parts, rows);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const Tile& tile = panels[i].tile;
      const SharedView panel =
          panel_(group, static_cast<int>(i)).columns(0, static_cast<int>(tile.shape()[1]));
      store(plan_.transposed ? panel.T() : panel, tile);
    }
    fence_proxy_async();
    meet_copiers(group);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      tma_store(panels[i].to, panel_(group, static_cast<int>(i)).rows(16 * warp_index(), 16));
    }
    bulk_commit();
  }

 private:
  // What a warpgroup has of a panel, and where a warp's 16 rows of it go.
  struct Panel {
    Tile tile;
    TensorView to;
  };
  std::vector<Panel> panels(const std::vector<Part>& parts, const SummedRows& summed) const {
    const typename Keys::One sequence = sequences_.of(summed.sequence);
    const Block rows = sequence.queries.block(summed.number, a_.block_q);
    std::vector<Panel> panels;
    for (const Part& part : parts) {
      const Tile dq = (part.sum * AttentionScores(a_).product_scale).cast(a_.dtype);
      const int columns = static_cast<int>(dq.shape()[1]);
      const Index first_row = plan_.by_columns ? 0 : 4 * part.number;
      const Block own = rows.part(first_row + warp_index(), 16);
      for (int i = 0; i < panels_of(columns); ++i) {
        const int first = kColumnsOfPanel * i, width = std::min(columns - first, kColumnsOfPanel);
        const Block of_dim = Dim(a_.dim).block(plan_.by_columns ? part.number : i, kColumnsOfPanel);
        panels.push_back({dq.slice({0, first}, {kGroupRows, width}),
                          sequences_.query_output(sequence, dQ_, own, summed.head, of_dim)});
      }
    }
    return panels;
  }
  // Transposed, columns become rows that other warps copy.
  void meet_copiers(const Index& group) const {
    if (plan_.transposed) {
      own_.sync(group);
    } else {
      warp_sync();
    }
  }

  const Attention& a_;
  const BackwardPlan& plan_;
  const Keys& sequences_;
  Tensor dQ_;
  NamedBarrier& own_;
  std::function<SharedView(const Index& group, int panel)> panel_;
};

template <typename Keys>
SumTiles sum_tiles(const Attention& a, const BackwardPlan& plan, const Keys& sequences,
                   const Tensor& sums) {
  return {sums, plan.sums(a, sequences.kept_blocks(a.block_q))[0], plan.tiles(a),
          plan.tile_lines(a)};
}

// dQ in order: sums that are complete, converted by the warpgroups behind each block of keys. It
// passes through the place of dS, which no product reads then.
template <typename Keys>
class QueryGradients {
 public:
  // `ds`: in each group's columns 64 rows for each panel of 64 columns. `own`: barriers of a group.
  QueryGradients(Kernel& kernel, const Attention& a, const BackwardPlan& plan,
                 const Keys& sequences, const Tensor& words, const Tensor& sums, const Tensor& dQ,
                 const SharedView& ds, NamedBarrier& own)
      : summed_(kernel, a, sequences, words, sum_tiles(a, plan, sequences, sums), kGroups),
        stored_(a, plan, sequences, dQ, own,
                [ds](const Index& group, int panel) { return panel_of(ds, group, panel); }) {}

  void give_all(Ring& keys) { summed_.give_all(keys); }

  // The blocks of rows up to their end.
  void convert(const Index& group) {
    summed_.convert(group, [&](const std::vector<Tile>& sums, const SummedRows& rows) {
      std::vector<typename StoredQueryGradients<Keys>::Part> parts;
      for (const Tile& sum : sums) parts.push_back({sum, static_cast<int>(parts.size())});
      stored_.put(group, parts, rows);
    });
  }

 private:
  Summed<Keys> summed_;
  StoredQueryGradients<Keys> stored_;
};

// dQ in order: who adds last to a block of rows adds what the others have in memory to what it has
// in registers instead, and converts that. So no sum is read again, and none is waited for.
template <typename Keys>
class LastAdditions {
 public:
  static constexpr int kNumbers = 3;  // that travel with a turn

  // `panel`: where a group's panels of dQ lie, apart from what products read.
  LastAdditions(Kernel& kernel, const Attention& a, const BackwardPlan& plan, const Keys& sequences,
                const Tensor& sums, const Tensor& dQ, NamedBarrier& own,
                const std::function<SharedView(const Index& group, int panel)>& panel)
      : tiles_(sum_tiles(a, plan, sequences, sums)),
        sums_(kernel, "sum_tiles", stages(1),
              {{f32, tiles_.of_block * tiles_.lines_of_tile, 128, SharedMap{}}}),
        stored_(a, plan, sequences, dQ, own, panel) {}

  // By the warp that waits for turns, when the last one has come: what others have added.
  void bring(const Index& kept) {
    fence_proxy_async_global();
    sums_.produce([&](const Slot& slot) {
      tma_load(tiles_.sums(tiles_.lines.block(kept, tiles_.of_block * tiles_.lines_of_tile), all),
               slot[0]);
    });
  }

  // By a warpgroup. `part` is that of the block of rows which `dq` is.
  void finish(const Index& group, const Index& part, const Tile& dq, const Condition& is_first,
              const SummedRows& rows) {
    Var sum{dq};
    when(!is_first, [&] {
      const int lines = tiles_.lines_of_tile, width = tiles_.width();
      const Slot slot = sums_.consume();
      sum =
          from_fragments(load(slot[0].rows(lines * part, lines)).reshape({64 * width}), width) + dq;
      // Beside products a load may take longer than the copy that comes next.
      fence_proxy_async();
      sums_.release(slot);
    });
    stored_.put(group, {{sum, part}}, rows);
  }
  // By a warpgroup that has no part of a block of rows.
  void pass_over() {
    const Slot slot = sums_.consume();
    sums_.release(slot);
  }

 private:
  SumTiles tiles_;
  Ring sums_;
  StoredQueryGradients<Keys> stored_;
};

}  // namespace tilewright::kernels
