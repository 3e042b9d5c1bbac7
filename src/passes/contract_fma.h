#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Numerics: contracts a * b + c and a * b - c of f32 tiles into one rounding, where the product has
// no other use. Returns how many.
int contract_fma(ir::Kernel& kernel);

}  // namespace tilewright::passes
