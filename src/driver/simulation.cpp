#include "driver/simulation.h"

#include "driver/launch_plan.h"

namespace tilewright::driver {

simulator::MachineReport simulate(const ir::Kernel& machine, const Arguments& arguments,
                                  const simulator::MachineOptions& options) {
  if (outputs_are_empty(machine, arguments)) return {};
  return simulator::run_machine(machine, arguments, options);
}

Diagnostic diagnostic_of(const simulator::Fault& fault) {
  Diagnostic text(fault.first, fault.message, ErrorKind::result);
  const bool is_same =
      fault.second.file == fault.first.file && fault.second.line == fault.first.line;
  if (fault.second.file != nullptr && !is_same) text.note(fault.second, "the other place is");
  if (!fault.missing.empty()) text.fix(fault.missing);
  return text;
}

}  // namespace tilewright::driver
