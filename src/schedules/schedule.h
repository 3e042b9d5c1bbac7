#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace tilewright::schedules {

// From the tile to the scheduled form for sm_90a: by tensor cores where the kernel has products,
// else by rows. `reserved`: bytes of a CTA's shared memory to leave free.
ir::Kernel schedule_for_sm90(const ir::Kernel& tile, std::int64_t reserved = 0);

}  // namespace tilewright::schedules
