#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "passes/pipeline.h"
#include "simulator/machine/machine.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// An explicit kernel as the simulator takes it, and one launch of it.
namespace tilewright::test {

inline ir::Kernel lowered(const Kernel& kernel) {
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  return machine;
}

inline simulator::MachineReport launch_once(
    const ir::Kernel& machine, const std::vector<std::pair<std::string, HostTensor*>>& tensors,
    std::uint64_t seed) {
  Arguments arguments;
  for (const auto& [name, tensor] : tensors) {
    arguments.tensors.push_back(
        {name, tensor->dtype(), tensor->shape(), tensor->strides(), tensor->data()});
  }
  simulator::MachineOptions options;
  options.seed = seed;
  return simulator::run_machine(machine, arguments, options);
}

}  // namespace tilewright::test
