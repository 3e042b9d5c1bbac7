#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Numerics: x + dot(a, b) becomes dot(a, b, x), where the product has no other use: the sum begins
// with x instead of ending with it. Returns how many.
int fold_accumulators(ir::Kernel& kernel);

}  // namespace tilewright::passes
