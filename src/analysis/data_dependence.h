#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// For each scalar of a kernel in the tile form, whether it may depend on more than the sizes of
// tensors and the place in the grid and in loops: on data, on numbers that a launch gives, on the
// rank or the launch's number.
std::vector<bool> data_dependent(const ir::Kernel& kernel);

}  // namespace tilewright::analysis
