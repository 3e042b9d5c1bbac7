#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Gives every shared tile and barrier array its offset. More than a CTA has is an error that lists
// what takes it.
void allocate_shared(ir::Kernel& kernel);

}  // namespace tilewright::passes
