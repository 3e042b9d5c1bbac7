#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// The operation that makes each value; null for parameters and block arguments. Holds while the
// kernel's blocks are not changed.
std::vector<const ir::Operation*> definitions(const ir::Kernel& kernel);

// What the operation makes, if it is an integer that the kernel states. The operation may be null.
std::optional<std::int64_t> integer_constant(const ir::Operation* operation);

// Whether the value is a loaded tile, or a part of one, perhaps transposed.
bool is_loaded(const std::vector<const ir::Operation*>& definitions, ir::ValueId value);

}  // namespace tilewright::analysis
