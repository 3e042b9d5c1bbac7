#pragma once

#include "ir/ir.h"
#include "schedules/chosen.h"

namespace tilewright::schedules {

// Whether a kernel is a sum of products of loaded tiles over one loop, which is stored: what
// schedule_core_product takes.
bool is_core_product(const ir::Kernel& tile);

// For a core with explicit memories. Operands go along the shortest way from global memory to the
// product's, through a ring of stages at each memory; results go the shortest way back. Each unit
// on the way is issued to by its own sequencer, in a loop over the blocks of the grid.
Scheduled schedule_core_product(const ir::Kernel& tile);

}  // namespace tilewright::schedules
