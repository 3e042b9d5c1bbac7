#pragma once

#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"

namespace tilewright::cpu {

// Raises where there is no memory at the first or the last element of a tensor: a GPU's address,
// what was freed, or fewer elements than the shape says.
void check_present(const ir::Kernel& kernel, const std::vector<TensorArgument>& tensors);

}  // namespace tilewright::cpu
