#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// What products read is copied by TMA, which cannot leave out rows before a tensor where the block
// also ends before the tensor does: an error at the load's line.
void check_starts(ir::Kernel& kernel);

}  // namespace tilewright::passes
