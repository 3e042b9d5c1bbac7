#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Puts an operation check before each access of the machine form to global memory whose indices,
// block or end the launch decides: the same that the virtual GPU checks of it. Returns how many.
int check_accesses(ir::Kernel& kernel);

}  // namespace tilewright::passes
