#pragma once

#include "command.h"
#include "compiler/target.h"
#include "library/kernel_source.h"

namespace tilewright::tools {

// `simulate --time`: how long an operation takes by the simulator's clock.
int simulate_time(const Request& request, const library::KernelSource& source,
                  const compiler::Target& target);

}  // namespace tilewright::tools
