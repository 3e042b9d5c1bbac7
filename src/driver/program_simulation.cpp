#include <memory>
#include <utility>

#include "driver/build.h"
#include "driver/claims.h"
#include "driver/simulation.h"
#include "ir/program.h"
#include "simulator/machine/streams.h"
#include "tilewright/program.h"

namespace tilewright {
namespace {

// The machine forms of the program's kernels, in their order.
std::vector<ir::Kernel> machine_forms(const ir::Program& program) {
  std::vector<ir::Kernel> kernels;
  for (const auto& kernel : program.kernels) {
    if (kernel->form == ir::Form::machine) {
      kernels.push_back(*kernel);
      continue;
    }
    passes::Rewrites rewrites;
    kernels.push_back(driver::lower(*kernel, rewrites));
    driver::enforce_claims(kernels.back(), nullptr);
  }
  return kernels;
}

// What the program's launches are given and nobody passes begins with zeros.
void clear_owned(const ir::Program& program, std::vector<std::vector<HostTensor>>& tensors) {
  for (std::vector<HostTensor>& rank : tensors) {
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const ir::ProgramBuffer& buffer = program.buffers[i];
      if (buffer.kind == ir::ProgramBuffer::Kind::tensor) continue;
      rank[i] = HostTensor::zeros(buffer.dtype, buffer.shape);
    }
  }
}

}  // namespace

SimulationReport simulate(const Program& program, ProgramMemory& memory,
                          const SimulationOptions& options) {
  const ir::Program& recorded = program.finish();
  const std::vector<ir::Kernel> kernels = machine_forms(recorded);
  simulator::MachineOptions machine;
  machine.multiprocessors = machine.resident = options.multiprocessors;
  machine.strict = options.strict;
  machine.control_only = options.control_only;
  const auto address = [&](int buffer, int rank) { return memory.tensors[rank][buffer].data(); };
  SimulationReport report;
  const std::vector<std::vector<HostTensor>> before = memory.tensors;
  for (int i = 0; i < options.schedules; ++i) {
    if (i > 0) memory.tensors = before;
    clear_owned(recorded, memory.tensors);
    machine.seed = options.seed + static_cast<std::uint64_t>(i);
    simulator::MachineReport run =
        simulator::run_program(recorded, kernels, address, machine, options.runs);
    ++report.schedules;
    report.operations += run.operations;
    if (run.ok()) continue;
    report.seed = machine.seed;
    for (const simulator::Fault& fault : run.faults) {
      report.faults.push_back(
          {fault.kind, fault.first, fault.second, driver::diagnostic_of(fault).render()});
    }
    break;
  }
  return report;
}

SimulationReport simulate(const Program& program, const SimulationOptions& options) {
  ProgramMemory memory(program);
  return simulate(program, memory, options);
}

}  // namespace tilewright
