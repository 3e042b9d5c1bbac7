#pragma once

#include "ir/ir.h"

namespace tilewright::schedules {

// The kernel with a load of its own for what reads a tile in registers that is also loaded for
// products, where it does not lie there as they need it: parts of it, its transpose, or another
// number of rows than products have.
ir::Kernel reload(const ir::Kernel& kernel);

}  // namespace tilewright::schedules
