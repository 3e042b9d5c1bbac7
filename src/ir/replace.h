#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tilewright::ir {

// What stands in an operation's place: a value for each of its results, and operations.
struct Replacement {
  std::vector<ValueId> values;
  std::vector<Operation> body;
};

// Asks `replacement` of each operation of the kernel, in order and behind those of its own blocks.
// Its operands are already what others were replaced by. Without an answer the operation stays.
void replace(Kernel& kernel,
             const std::function<std::optional<Replacement>(Operation&)>& replacement);

}  // namespace tilewright::ir
