#pragma once

#include "ir/ir.h"
#include "schedules/chosen.h"

namespace tilewright::schedules {

// For a core with explicit memories: products on its product unit, all else on its vector unit.
// Each value goes the shortest way of the record from what makes it to what takes it, through a
// ring of stages at each memory, and through global memory where there is no other way. Each
// sequencer traces the kernel, and issues what its units do of it. Loads, and products of what was
// loaded, run a step of their loop ahead.
Scheduled schedule_core_tiles(const ir::Kernel& traced);

}  // namespace tilewright::schedules
