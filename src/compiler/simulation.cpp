#include "compiler/simulation.h"

#include <exception>
#include <utility>

#include "compiler/claims.h"
#include "compiler/launch_plan.h"
#include "simulator/machine/trace_recorder.h"
#include "support/same_line.h"

namespace tilewright::compiler {

std::vector<ir::Kernel> simulated_forms(const ir::Kernel& kernel, std::string_view target,
                                        const MachineOptions& options) {
  std::vector<ir::Kernel> forms;
  std::exception_ptr broken;
  bool holds = false;
  for (MachineForm& form : machine_forms(kernel, target, options)) {
    try {
      if (!options.checked) enforce_claims(form.kernel, nullptr);
      holds = true;
    } catch (const Error&) {
      if (!broken) broken = std::current_exception();
    }
    forms.push_back(std::move(form.kernel));
  }
  if (!holds) std::rethrow_exception(broken);
  return forms;
}

simulator::MachineReport simulate(const ir::Kernel& machine, const Arguments& arguments,
                                  const simulator::MachineOptions& options) {
  check_tensor_maps(machine, arguments, options.multiprocessors);
  if (outputs_are_empty(machine, arguments)) return {};
  return simulator::run_machine(machine, arguments, options);
}

TracedRun trace_run(
    const std::function<simulator::MachineReport(const simulator::MachineOptions&)>& run,
    simulator::MachineOptions options) {
  simulator::TraceRecorder recorder;
  options.recorder = &recorder;
  simulator::MachineReport report = run(options);
  return {std::move(report), recorder.take()};
}

Diagnostic diagnostic_of(const simulator::Fault& fault) {
  Diagnostic text(fault.first, fault.message, ErrorKind::result);
  const bool is_same = same_line(fault.first, fault.second);
  if (fault.second.file != nullptr && !is_same) {
    const bool is_memory = fault.kind == "out_of_bounds" || fault.kind == "tensor_map";
    text.note(fault.second, is_memory ? "the memory is declared" : "the other place is");
  }
  if (!fault.missing.empty()) text.fix(fault.missing);
  return text;
}

}  // namespace tilewright::compiler
