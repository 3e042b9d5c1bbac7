#include "simulator/machine/machine.h"

#include "simulator/machine/gpu.h"

namespace tilewright::simulator {
namespace {

// No strides mean row-major.
Arguments with_strides(Arguments arguments) {
  for (TensorArgument& tensor : arguments.tensors) {
    if (!tensor.strides.empty()) continue;
    tensor.strides.assign(tensor.shape.size(), 1);
    for (std::size_t axis = tensor.shape.size(); axis-- > 1;) {
      tensor.strides[axis - 1] = tensor.strides[axis] * tensor.shape[axis];
    }
  }
  return arguments;
}

}  // namespace

MachineReport run_machine(const ir::Kernel& kernel, const Arguments& arguments,
                          const MachineOptions& options) {
  const Arguments complete = with_strides(arguments);
  const Program program = prepare(kernel, complete, options.multiprocessors);
  MachineReport report;
  FaultLog capacity(report, /*stop_at_first=*/false);
  check_capacity(program, capacity);
  // Memory that does not exist cannot be executed on.
  if (!report.ok()) return report;
  Gpu gpu(program, complete, options, report);
  try {
    gpu.run();
  } catch (const Stopped&) {
  }
  gpu.count_instructions();
  return report;
}

}  // namespace tilewright::simulator
