#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Removes loops that provably have no turn. The automatic schedule cuts loops where no row of a
// warpgroup is left to compute, and whoever loads for all of them has whole ones: nothing behind
// the cut.
void drop_empty_loops(ir::Kernel& kernel);

}  // namespace tilewright::passes
