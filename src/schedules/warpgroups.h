#pragma once

#include <cstdint>

#include "ir/ir.h"
#include "schedules/chosen.h"

namespace tilewright::schedules {

// From the tile to the scheduled form, in the explicit language itself: a producer warp
// runs the kernel's control flow and loads, one warpgroup for each 64 rows of the tiles runs it and
// the arithmetic, unless the kernel states another partition. Loads that products read go through
// shared memory by TMA, those of a loop through rings. A kernel that does not fit is a usage error
// at the operation that is in the way. `reserved`: bytes of shared memory to leave free.
Scheduled schedule_warpgroups(const ir::Kernel& tile, std::int64_t reserved = 0);

}  // namespace tilewright::schedules
