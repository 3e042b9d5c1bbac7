#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// The operation that makes each value; null for parameters and block arguments. Holds while the
// kernel's blocks are not changed.
std::vector<const ir::Operation*> definitions(const ir::Kernel& kernel);

// The load that makes a product's operand, directly or transposed; null for a computed one.
const ir::Operation* load_behind(const std::vector<const ir::Operation*>& definitions,
                                 ir::ValueId value, bool& transposed);

}  // namespace tilewright::analysis
