#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: where a loop sums products of what it computes from other products of the same
// iteration (attention: weights, of scores, times V), each sum waits for the next iteration, whose
// first products it runs beside: the tensor core has work while the operand is computed. The
// computed operand is carried to it, and what it is multiplied with is loaded there. Not done where
// the tiles that would be live together leave too few registers of a warpgroup for the rest, unless
// the kernel's schedule asks for it, nor where others read the same loads. Returns how many loops
// it changed. Must come after fold_accumulators, and before peel_masks, which would double what is
// rotated.
int overlap_products(ir::Kernel& kernel);

// A sum that does not wait for the next iteration, although it could do so by what it sums: where
// it is, and what is in the way. Of a kernel that the pass has been through.
struct SumInTurn {
  SourceLocation where;
  std::string why;
};
std::vector<SumInTurn> sums_in_turn(const ir::Kernel& kernel);

}  // namespace tilewright::passes
