#include "driver/simulation.h"

#include "driver/launch_plan.h"

namespace tilewright::driver {

simulator::MachineReport simulate(const ir::Kernel& machine, const Arguments& arguments,
                                  std::uint64_t seed) {
  if (outputs_are_empty(machine, arguments)) return {};
  simulator::MachineOptions options;
  options.seed = seed;
  return simulator::run_machine(machine, arguments, options);
}

}  // namespace tilewright::driver
