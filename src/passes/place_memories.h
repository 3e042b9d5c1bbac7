#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Gives every memory of a core its offset in its space, which makes the machine form: its
// instructions are there already. More than a space holds is an error that lists what takes it.
void place_memories(ir::Kernel& kernel);

}  // namespace tilewright::passes
