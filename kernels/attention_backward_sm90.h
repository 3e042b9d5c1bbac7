#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// How the columns of K and the registers of a thread are divided.
struct BackwardPlan {
  // Of the columns of K, as products take them from shared memory: each warpgroup has half of dQ's.
  int k_parts;
  // Each warpgroup has its keys and values in registers: products that read both operands from
  // shared memory take all of its bandwidth.
  bool keys_in_registers;
  int piece_columns;  // of dQ that a warpgroup adds to memory at a time
  // How many pieces of the four it adds behind the product of dV, behind that of dP, and once dV is
  // there.
  std::array<int, 3> pieces;
  int load_registers, math_registers;

  int piece_lines() const;  // the same in lines of 128 f32
  // The shape of the sums of dQ: lines of pieces, in the order of the registers that add them.
  std::vector<Dim> sums(const Attention& a, const Dim& batch, const Dim& queries) const;
  // The first of a block's pieces; the others follow it.
  Index piece(const Attention& a, const Dim& queries, const Index& sequence, const Index& head,
              const Index& block) const;
};
// Raises for what the schedule does not take.
BackwardPlan backward_plan(const Attention& attention, const Caller& caller);

// Inputs Q, K, V, dO, L, D, of which the last two have whole blocks of queries; the sums of dQ,
// which are added to; outputs dK, dV.
Kernel gradients_sm90(const Attention& attention, const BackwardPlan& plan,
                      const std::string& name);
// From these sums, dQ.
Kernel query_gradient_of_sums(const Attention& attention, const BackwardPlan& plan,
                              const std::string& name);

}  // namespace tilewright::kernels
