#pragma once

#include <string>
#include <vector>

#include "kernels/attention_backward_shared.h"
#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

constexpr int kGroups = 2;      // warpgroups that compute
constexpr int kGroupRows = 64;  // keys of each
// Shared memory has whole panels of columns, of which the last ones may not exist.
constexpr int kColumnsOfPanel = 64;
constexpr int panels_of(int dim) { return (dim + kColumnsOfPanel - 1) / kColumnsOfPanel; }
constexpr int shared_columns(int dim) { return kColumnsOfPanel * panels_of(dim); }
constexpr int kScoreStages = 2;  // of dS

// How dQ is divided, and in which order a warpgroup works.
struct BackwardPlan {
  static constexpr int kTileRows = 64;  // of a warpgroup's tile of dQ; and columns, of dQ^T
  static constexpr int kLine = 128;     // f32 that a warp adds at a time
  // A warpgroup adds a tile: half of dQ's columns, or of its rows; or there is one tile, which the
  // warpgroups add in turn. It is 64 x 64 of dQ^T, or 64 rows of dQ.
  bool by_columns, alternates, transposed;
  // LSE and D of a block of rows are read before its products begin, where registers have room.
  bool reads_l_early, reads_d_early;
  // Columns of V that a warpgroup holds in registers.
  int held_columns = 0;
  // The warpgroups meet before dP is waited for, not behind dS: ptxas keeps the exponentials before
  // that place, so that they run beside the product.
  bool meets_early;
  // dQ of a block of queries is summed in the order of the blocks of keys: the same bits in every
  // launch.
  bool ordered;
  // Who adds last to a block of queries converts it.
  bool last_converts = false;
  // Of several kernels that add to the same sums one behind the other: what those before have
  // summed is there, and sums stay for those behind.
  bool joins = false, leaves = false;
  bool is_alone() const { return !joins && !leaves; }
  // Blocks of keys are as long as each other, and each head has its own: those of the last wave are
  // divided among all multiprocessors, which then add their dK and dV in f32. In no order.
  bool divides = false;
  // Several heads share keys: parts of them may go through a block of keys for themselves, and then
  // sum dK and dV so.
  bool shares;
  KeySums keys;
  // In no order, each block of keys begins at another row.
  bool rotates;
  // A warpgroup's warps meet before they add: measured, not explained (docs/log).
  bool adds_together;
  // With 128 queries to a block shared memory has room for the next block of keys, and the stage of
  // dS that is not read last for dV. Else dV leaves through a place of its own.
  int key_stages;
  bool values_apart;
  // The second warpgroup begins a block of keys behind the first one's first products, so that one
  // computes exponentials beside products of the other. Where turns bring them apart, it gains
  // nothing.
  bool staggers;
  int load_registers, math_registers;

  Order order() const { return ordered ? Order::blocks : Order::any; }
  bool sums_keys_apart() const { return shares && keys == KeySums::apart; }
  // In no order any part of heads that share keys may add first.
  Division division() const { return shares && !ordered ? Division::uneven : Division::even; }
  // The shape of the sums of dQ: lines of 128 f32, in the order of the registers that add them.
  // `blocks`: of queries, of all heads.
  std::vector<Dim> sums(const Attention& a, const Dim& blocks) const;
  // How many tiles a block of queries has, each with so many lines. Those of a block follow those
  // of the block before.
  int tiles(const Attention& a) const;
  int tile_lines(const Attention& a) const;
};
// Queries of a block: scores, dP and two sums of the keys' rows lie in registers.
int backward_rows(const Attention& attention);
// Of dims that are multiples of 16 up to 128. Raises for what else the schedule does not take.
BackwardPlan backward_plan(const Attention& attention, Order order, KeySums keys, bool is_packed,
                           const Caller& caller);

// Sums of dK and dV of heads that share keys, in so many parts; and the words that count who has
// added, to a block of dQ in order, and to those. `Shapes`: BatchShapes or PackedShapes.
template <typename Shapes>
SharedSumsShape shared_sums(const Attention& a, const BackwardPlan& plan, const Shapes& shapes,
                            const Dim& parts) {
  const Dim blocks = shapes.kept_key_blocks(a.block_k);
  return {KeyTiles::of(a), blocks, parts, plan.order(), plan.keys, /*always=*/!plan.is_alone()};
}
template <typename Shapes>
Dim backward_turns(const Attention& a, const BackwardPlan& plan, const Shapes& shapes,
                   const Dim& parts) {
  return (plan.ordered ? shapes.kept_blocks(a.block_q) : Dim(0)) +
         (plan.shares ? shared_sums(a, plan, shapes, parts).words() : Dim(0));
}

// Of Batch or Packed. Inputs, behind the offsets of Packed: Q, K, V, dO, L, D, of which the last
// two have whole blocks of queries; the sums of dQ, which are added to; in order, dQ; outputs dK,
// dV; in order or where heads share keys, words that are 0 before; in the latter case sums of dK
// and dV.
template <typename Sequences>
Kernel gradients_sm90(const Attention& attention, const BackwardPlan& plan,
                      const std::string& name);
// dQ of these sums, where they are in no order.
template <typename Sequences>
Kernel query_gradient_of_sums(const Attention& attention, const BackwardPlan& plan,
                              const std::string& name);

}  // namespace tilewright::kernels
