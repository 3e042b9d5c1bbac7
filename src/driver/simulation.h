#pragma once

#include <cstdint>

#include "driver/build.h"
#include "simulator/machine/machine.h"
#include "support/diagnostic.h"

namespace tilewright::driver {

// Executes the machine form on the virtual GPU. A launch whose outputs are all empty does nothing,
// as on the GPU.
simulator::MachineReport simulate(const ir::Kernel& machine, const Arguments& arguments,
                                  const simulator::MachineOptions& options);

// A fault for a person to read.
Diagnostic diagnostic_of(const simulator::Fault& fault);

}  // namespace tilewright::driver
