#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Scheduled form: a condition whose comparisons are proven or refuted gives way to the branch that
// is always taken, such as a fill of the tail of what has none.
void drop_branches(ir::Kernel& kernel);

}  // namespace tilewright::passes
