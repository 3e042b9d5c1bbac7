#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// From the scheduled to the machine form: tiles become register arrays, in place where nothing
// else needs the old value, and every operation becomes the instructions that are printed. Layouts
// and wait counts are assigned before; places in shared memory after (allocate_shared).
void bufferise(ir::Kernel& kernel);

}  // namespace tilewright::passes
