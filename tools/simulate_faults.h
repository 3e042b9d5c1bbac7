#pragma once

#include "command.h"
#include "driver/target.h"
#include "tilewright/library.h"

namespace tilewright::tools {

// `simulate --faults`.
int simulate_faults(const Request& request, const LibraryKernel& entry,
                    const driver::Target& target);

}  // namespace tilewright::tools
