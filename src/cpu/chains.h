#pragma once

#include "cpu/program.h"

namespace tilewright::cpu {

// Lets functions of strips take the value of the one before from a register (Apply::takes), and
// says which of these values need no memory.
void make_chains(Program& program);

}  // namespace tilewright::cpu
