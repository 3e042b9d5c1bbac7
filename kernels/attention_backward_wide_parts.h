#pragma once

#include <optional>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_shared.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_backward_wide_sm90.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"

// What the kernels of dims above 128 share. A CTA has 64 keys, and each of two warpgroups half of
// the columns of their dK and dV, in its registers. Scores are computed as S^T = K Q^T, of which
// each has half of the queries. P and dS pass through shared memory to the products dV = P^T dO,
// dK = dS^T Q and dQ = dS K. Tiles of rows lie there in two halves of columns, one below the other.
namespace tilewright::kernels::wide {

inline constexpr int kHalves = 2;
inline constexpr int kRows = 64;     // of a block of queries, and of a CTA's keys
inline constexpr int kOwnRows = 32;  // queries of whose scores a warpgroup has the columns
inline constexpr int kRowStages = 2;
inline constexpr int kSumColumns = 32;
inline constexpr int kSumLine = 128;  // f32 that a warp adds at a time
inline constexpr int kSumLines = kRows * kSumColumns / kSumLine;

// Whole panels of 64 bytes. The columns behind the last are zero.
inline int half_of(int dim) { return (dim + 63) / 64 * 32; }
inline int sum_tiles(const Attention& a) { return kHalves * half_of(a.dim) / kSumColumns; }

inline SharedView half(const SharedView& tile, const IndexOperand& which) {
  return tile.rows(kRows * which.index, kRows);
}

template <typename Keys>
SummedShapes summed_shapes(const Attention& a, const Keys& sequences,
                           const WideBackwardPlan& plan) {
  SummedShapes summed{
      kRows, wide_backward_sums(a, sequences.kept_blocks(kRows)), {}, {}, plan.alone_converts};
  if (plan.ordered) summed.turns = sequences.kept_blocks(kRows) * wide_backward_turns(a);
  if (plan.shares) {
    summed.keys.emplace(KeyTiles::of(a), sequences.kept_key_blocks(a.block_k),
                        sequences.parts().count, plan.order(), plan.keys);
  }
  return summed;
}

// The parts of the heads that share keys.
inline Dim parts_of(Kernel& kernel, const WideBackwardPlan& plan) {
  return plan.shares ? kernel.dim("parts", at_least(1)) : Dim(1);
}

template <typename Sequence>
void load_halves(const Sequence& sequence, const Tensor& from, const Block& rows, const Index& head,
                 int dim, const SharedView& to, const TmaOptions& options) {
  for (int i = 0; i < kHalves; ++i) {
    const Block columns = Dim(dim).block(i, half_of(dim));
    tma_load(sequence.rows(from, rows, head, columns), half(to, i), options);
  }
}

inline SharedView own_rows(const SharedView& block, const Index& group) {
  return block.rows(kOwnRows * group, kOwnRows);
}

// Keys by this warpgroup's rows of a block.
inline Pending rows_product(const SharedView& keys, const SharedView& rows, const Index& group) {
  const auto own = [&](int i) { return own_rows(half(rows, i), group).T(); };
  return wgmma(half(keys, 1), own(1), wgmma(half(keys, 0), own(0)));
}

inline Tile statistic(const SharedView& rows, const Index& group) {
  return load(rows.first_row().column_part(group, kOwnRows));
}

// Which scores a warpgroup has: those of its part of a block of rows. Whether a mask cuts the
// block.
struct ScorePart {
  Index group, sequence, row, is_cut;
};
// P^T of the part. `keys_of` gives the block of keys, of the sequence. Of sequences of one length
// the mask is the same.
template <typename Keys, typename KeysOf>
Tile weights_of(const AttentionScores& scores, const Keys& sequences, const ScorePart& part,
                const Tile& products, const Tile& l, const KeysOf& keys_of) {
  Var x{scores.capped(products) * (scores.scale * kLog2e) - l};
  when(part.is_cut > 0, [&] {
    const Tile s = x;
    const typename Keys::One one = sequences.of(Keys::kOneLength ? Index(0) : part.sequence);
    const Block rows = one.queries.block(part.row, kRows).part(part.group, kOwnRows);
    x = one.mask.apply_transposed(s, rows, keys_of(one));
  });
  return exp2(x);
}

// dS without the scale.
inline Tile score_gradient(const AttentionScores& scores, const Tile& p, const Tile& value_products,
                           const Tile& l, const Tile& d) {
  const Tile gradient = p * (value_products - d);
  if (!scores.is_capped()) return gradient;
  // The capped score follows from its weight, which needs no registers of its own.
  const Tile capped = (log2(p) + l) * (1 / (scores.scale * kLog2e));
  return where(p == 0, 0, gradient * (1 - capped * capped));
}

// To the sums of dQ, from the given tile of kSumColumns columns on; in order, in a turn.
inline void add_to_sums(const Tensor& sums, const Dim& lines, const Index& tile, const Tile& dq,
                        const std::optional<Turns::Turn>& turn) {
  const auto each = [&](const auto& put) {
    for (int column = 0; column < dq.shape()[1]; column += kSumColumns) {
      const Tile part = dq.slice({0, column}, {kRows, kSumColumns});
      put(sums(lines.block(tile + column / kSumColumns, kSumLines), all),
          fragments(part).reshape({kSumLines, kSumLine}));
    }
  };
  if (!turn) {
    each([](const TensorView& to, const Tile& sum) { atomic_add(to, sum); });
    return;
  }
  when(
      turn->is_first(),
      [&] { each([](const TensorView& to, const Tile& sum) { tilewright::store(to, sum); }); },
      [&] {
        each([](const TensorView& to, const Tile& sum) { atomic_add(to, sum, Order::blocks); });
      });
}

}  // namespace tilewright::kernels::wide
