#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Drops pure operations and loop-carried values that nothing uses.
void eliminate_dead(ir::Kernel& kernel);

}  // namespace tilewright::passes
