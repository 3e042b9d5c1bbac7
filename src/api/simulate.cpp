#include "compiler/dump.h"
#include "compiler/simulation.h"
#include "ir/program.h"
#include "ir/program_exchanges.h"
#include "library/program_simulation.h"
#include "tilewright/program.h"

namespace tilewright {

SimulationReport simulate(const Program& program, ProgramMemory& memory,
                          const SimulationOptions& options) {
  compiler::dump_program(program.finish());
  ir::check_meetings(program.finish());
  ir::check_count(program.finish(), "schedules", options.schedules);
  ir::check_count(program.finish(), "runs", options.runs);
  ir::check_count(program.finish(), "multiprocessors", options.multiprocessors);
  const ir::Program recorded =
      ir::bind_program(program.finish(), memory.sizes(), options.multiprocessors,
                       ir::contents_of(memory.tensors.front()));
  ir::check_tensors(recorded, memory.tensors);
  const std::vector<std::vector<ir::Kernel>> forms =
      library::machine_forms(recorded, library::target_of(recorded));
  simulator::MachineOptions machine;
  machine.multiprocessors = machine.resident = options.multiprocessors;
  machine.strict = options.strict;
  machine.control_only = options.control_only;
  SimulationReport report;
  const library::ProgramTensors before = memory.tensors;
  library::ProgramTensors* const after = options.control_only ? nullptr : &memory.tensors;
  for (int i = 0; i < options.schedules && report.ok(); ++i) {
    machine.seed = options.seed + static_cast<std::uint64_t>(i);
    ++report.schedules;
    // The first list comes last: what it computes stays.
    for (auto kernels = forms.rbegin(); kernels != forms.rend() && report.ok(); ++kernels) {
      ir::Program own = library::with_callers(recorded);
      ir::add_owned(own, *kernels);
      const simulator::MachineReport run =
          library::simulate_program(own, *kernels, before, after, machine, options.runs);
      report.operations += run.operations;
      if (i == 0) report.cycles = run.cycles;
      if (run.ok()) continue;
      report.seed = machine.seed;
      for (const simulator::Fault& fault : run.faults) {
        report.faults.push_back(
            {fault.kind, fault.first, fault.second, compiler::diagnostic_of(fault).render()});
      }
    }
  }
  return report;
}

SimulationReport simulate(const Program& program, const SimulationOptions& options) {
  ProgramMemory memory(program);
  return simulate(program, memory, options);
}

}  // namespace tilewright
