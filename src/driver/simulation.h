#pragma once

#include <cstdint>

#include "driver/build.h"
#include "simulator/machine/machine.h"

namespace tilewright::driver {

// Executes the machine form on the virtual GPU. A launch whose outputs are all empty does nothing,
// as on the GPU.
simulator::MachineReport simulate(const ir::Kernel& machine, const Arguments& arguments,
                                  std::uint64_t seed);

}  // namespace tilewright::driver
