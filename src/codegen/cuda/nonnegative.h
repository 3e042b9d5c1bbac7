#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::codegen {

// For each value, whether it is an integer that cannot be negative: division then needs no care for
// the sign.
std::vector<bool> nonnegative_values(const ir::Kernel& kernel);

}  // namespace tilewright::codegen
