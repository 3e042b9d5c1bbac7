#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: splits a loop so that the iterations in which a mask hides nothing run without it. A
// mask is a select whose condition compares integers that are linear in the loop's index; interval
// arithmetic gives the iterations in which it holds for every element. Up to three loops follow
// each other: cut by a lower bound, whole, cut by an upper one. A mask outside of loops is skipped
// by a condition of its own. Only of kernels with products: beside them every instruction on the
// elements counts, while rows without any wait for memory.
void peel_masks(ir::Kernel& kernel);

}  // namespace tilewright::passes
