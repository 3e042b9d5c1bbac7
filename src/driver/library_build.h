#pragma once

#include "driver/target.h"
#include "tilewright/library.h"

namespace tilewright::driver {

// The kernel that choose_schedule() chooses for the target; for the interpreter its tile-level
// definition.
Kernel trace_entry(const LibraryKernel& entry, const OptionValues& options, const Target& target);

}  // namespace tilewright::driver
