#include "simulator/machine/machine.h"

#include "simulator/machine/gpu.h"

namespace tilewright::simulator {

MachineReport run_machine(const ir::Kernel& kernel, const Arguments& arguments,
                          const MachineOptions& options) {
  const Program program = prepare(kernel, arguments, options.multiprocessors);
  MachineReport report;
  FaultLog capacity(report, /*stop_at_first=*/false);
  check_capacity(program, capacity);
  // Memory that does not exist cannot be executed on.
  if (!report.ok()) return report;
  Gpu gpu(program, arguments, options, report);
  try {
    gpu.run();
  } catch (const Stopped&) {
  }
  gpu.count_instructions();
  return report;
}

}  // namespace tilewright::simulator
