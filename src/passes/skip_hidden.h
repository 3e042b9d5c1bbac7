#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: a block of the grid is computed by several warpgroups, each with rows of its own. A
// loop's iterations in which a mask hides everything from those rows, and that change nothing then,
// are left out by the warpgroup, and so is the whole loop by one whose rows do not exist. What is
// loaded for others in these iterations is discarded: loops in front and behind say so. Returns how
// many loops were cut.
// Must come after drop_selects and fold_accumulators, and before what splits and rotates loops.
int skip_hidden(ir::Kernel& kernel);

}  // namespace tilewright::passes
