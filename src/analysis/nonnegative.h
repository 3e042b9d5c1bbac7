#pragma once

#include <functional>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// For each value, whether it is an integer that cannot be negative. `given` is asked about integers
// of which this does not follow from those that they are computed from.
std::vector<bool> nonnegative_values(const ir::Kernel& kernel,
                                     const std::function<bool(ir::ValueId)>& given = {});

}  // namespace tilewright::analysis
