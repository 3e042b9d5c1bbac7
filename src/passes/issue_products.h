#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: in loops with several products, brings the products forward, so that the tensor core
// has work while results are read. Those of loaded tiles alone begin a turn of the loop. Of the
// others that comes next whose operands wait for the least of what was issued; where that would
// take more registers than a warpgroup has, they keep their order; and where the first ones beside
// each other do, nothing changes, unless the kernel's schedule asks for overlap. What products need
// comes before them, all else behind them; what has effects keeps its order. Returns how many loops
// it changed. Must come behind overlap_products, and before peel_masks, which doubles loops.
int issue_products(ir::Kernel& kernel);

}  // namespace tilewright::passes
