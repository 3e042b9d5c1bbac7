#pragma once

#include "ir/ir.h"

namespace tilewright::schedules {

// From the tile to the scheduled form for sm_90a: by tensor cores where the kernel has products,
// else by rows.
ir::Kernel schedule_for_sm90(const ir::Kernel& tile);

}  // namespace tilewright::schedules
