#pragma once

#include <string>
#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// How dQ is divided, and in which order a warpgroup works.
struct BackwardPlan {
  // A warpgroup adds a tile of 64 x 64 of dQ^T: half of dQ's columns, or of its rows; or there is
  // one tile, which the warpgroups add in turn.
  bool by_columns, alternates;
  // The rows' statistics are read as soon as the products that need them have begun, where
  // registers have room for them.
  bool reads_early;
  // The warpgroups meet before dP is waited for, not behind dS: ptxas keeps the exponentials before
  // that place, so that they run beside the product.
  bool meets_early;
  // dQ of a block of queries is summed in the order of the blocks of keys: the same bits in every
  // launch.
  bool ordered;
  // In no order, each block of keys begins at another row.
  bool rotates;
  // A warpgroup's warps meet before they add: measured, not explained (docs/log).
  bool adds_together;
  int load_registers, math_registers;

  // The shape of the sums of dQ: lines of 128 f32, in the order of the registers that add them.
  static std::vector<Dim> sums(const Attention& a, const Dim& batch, const Dim& queries);
  // How many blocks of keys have added to each block of queries.
  static std::vector<Dim> turns(const Attention& a, const Dim& batch, const Dim& queries);
  // How many tiles a block of queries has, and the first of them; the others follow it.
  static int tiles(const Attention& a);
  static Index tile(const Attention& a, const Dim& queries, const Index& sequence,
                    const Index& head, const Index& block);
};
// Queries of a block: scores, dP and two sums of the keys' rows lie in registers.
int backward_rows(const Attention& attention);
// Raises for what the schedule does not take.
BackwardPlan backward_plan(const Attention& attention, Order order, const Caller& caller);

// Inputs Q, K, V, dO, L, D, of which the last two have whole blocks of queries; the sums of dQ,
// which are added to; in order, the turns, which are zero before; outputs dK, dV.
Kernel gradients_sm90(const Attention& attention, const BackwardPlan& plan,
                      const std::string& name);
// From these sums, and in order from the turns, dQ.
Kernel query_gradient_of_sums(const Attention& attention, const BackwardPlan& plan,
                              const std::string& name);

}  // namespace tilewright::kernels
