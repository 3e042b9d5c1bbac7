#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Gives every tile of the scheduled form a register layout: products impose the accumulator's, the
// rest follows through elementwise operations, reductions and loops. A tile that nothing
// determines, or that two operations want differently, is an error at its line.
void assign_layouts(ir::Kernel& kernel);

}  // namespace tilewright::passes
