#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Replaces a pure operation, or a load of an input, by an equal one that is computed before it, in
// the same or an enclosing block.
void eliminate_common(ir::Kernel& kernel);

}  // namespace tilewright::passes
