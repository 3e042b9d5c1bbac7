#pragma once

#include "cpu/kernels.h"
#include "cpu/program.h"

namespace tilewright::cpu {

// Gives each tile its place in a thread's arena. Tiles that are never needed at once may share
// memory, and what copies bring together does where it can: a loop's variable is then computed
// where it lies, and the copy moves nothing. Also says how much memory products need beside.
void place_tiles(Program& program, const Kernels& kernels);

}  // namespace tilewright::cpu
