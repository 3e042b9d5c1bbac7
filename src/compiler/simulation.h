#pragma once

#include <functional>

#include "compiler/compile_to_machine.h"
#include "simulator/machine/machine.h"
#include "simulator/machine/trace.h"
#include "support/diagnostic.h"

namespace tilewright::compiler {

// Every machine form of the kernel that may ship (machine_forms). Raises where the author's claims
// hold for none of them; checked forms are not held against them.
std::vector<ir::Kernel> simulated_forms(const ir::Kernel& kernel, std::string_view target,
                                        const MachineOptions& options = {});

// Executes the machine form on the virtual GPU. A launch whose outputs are all empty does nothing,
// and one whose tensors TMA cannot copy is refused, as on the GPU.
simulator::MachineReport simulate(const ir::Kernel& machine, const Arguments& arguments,
                                  const simulator::MachineOptions& options);

// An execution, by whatever runs it with these options, and when what happened.
struct TracedRun {
  simulator::MachineReport report;
  simulator::Trace trace;
};
TracedRun trace_run(
    const std::function<simulator::MachineReport(const simulator::MachineOptions&)>& run,
    simulator::MachineOptions options);

// A fault for a person to read.
Diagnostic diagnostic_of(const simulator::Fault& fault);

}  // namespace tilewright::compiler
