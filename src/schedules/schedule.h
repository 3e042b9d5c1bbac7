#pragma once

#include <cstdint>

#include "ir/ir.h"
#include "schedules/chosen.h"

namespace tilewright::schedules {

// From the prepared tile form to the scheduled one, by the first schedule of the kernel's target
// that takes it, with the fields that the kernel states. `reserved`: bytes of a CTA's shared memory
// to leave free.
Scheduled schedule_for_target(const ir::Kernel& tile, std::int64_t reserved = 0);

}  // namespace tilewright::schedules
