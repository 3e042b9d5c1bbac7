#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Folds constants and identities of scalars, and turns arithmetic on dimensions into dimensions,
// which the host computes once a launch.
void simplify(ir::Kernel& kernel);

}  // namespace tilewright::passes
