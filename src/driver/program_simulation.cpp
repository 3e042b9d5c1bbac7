#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

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

// The buffers of all ranks, each from a multiple of 1024 bytes on, as of a GPU's allocator: what is
// found then hangs on the seed alone.
class AlignedMemory {
 public:
  AlignedMemory(const ir::Program& program, const ProgramMemory& memory)
      : bytes_(memory.tensors.size()) {
    for (std::size_t rank = 0; rank < bytes_.size(); ++rank) {
      for (std::size_t i = 0; i < program.buffers.size(); ++i) {
        const auto size = static_cast<std::size_t>(program.buffers[i].bytes());
        bytes_[rank].emplace_back(size + kAlignment);
        // What launches are given and nobody passes begins with zeros.
        if (program.buffers[i].kind != ir::ProgramBuffer::Kind::tensor || size == 0) continue;
        std::memcpy(at(static_cast<int>(i), static_cast<int>(rank)), memory.tensors[rank][i].data(),
                    size);
      }
    }
  }
  std::byte* at(int buffer, int rank) {
    std::byte* const first = bytes_[rank][buffer].data();
    const auto past = reinterpret_cast<std::uintptr_t>(first) % kAlignment;
    return past == 0 ? first : first + (kAlignment - past);
  }
  void copy_to(ProgramMemory& memory) {
    for (std::size_t rank = 0; rank < bytes_.size(); ++rank) {
      for (std::size_t i = 0; i < memory.tensors[rank].size(); ++i) {
        HostTensor& tensor = memory.tensors[rank][i];
        if (tensor.size_bytes() == 0) continue;
        std::memcpy(tensor.data(), at(static_cast<int>(i), static_cast<int>(rank)),
                    tensor.size_bytes());
      }
    }
  }

 private:
  static constexpr std::size_t kAlignment = 1024;
  std::vector<std::vector<std::vector<std::byte>>> bytes_;  // of each rank, each buffer's
};

}  // namespace

SimulationReport simulate(const Program& program, ProgramMemory& memory,
                          const SimulationOptions& options) {
  const ir::Program& recorded = program.finish();
  ir::check_tensors(recorded, memory.tensors);
  ir::check_count(recorded, "schedules", options.schedules);
  ir::check_count(recorded, "runs", options.runs);
  ir::check_count(recorded, "multiprocessors", options.multiprocessors);
  const std::vector<ir::Kernel> kernels = machine_forms(recorded);
  simulator::MachineOptions machine;
  machine.multiprocessors = machine.resident = options.multiprocessors;
  machine.strict = options.strict;
  machine.control_only = options.control_only;
  SimulationReport report;
  for (int i = 0; i < options.schedules; ++i) {
    AlignedMemory aligned(recorded, memory);
    const auto address = [&](int buffer, int rank) { return aligned.at(buffer, rank); };
    machine.seed = options.seed + static_cast<std::uint64_t>(i);
    simulator::MachineReport run =
        simulator::run_program(recorded, kernels, address, machine, options.runs);
    ++report.schedules;
    report.operations += run.operations;
    const bool is_last = i + 1 == options.schedules || !run.ok();
    if (is_last && !options.control_only) aligned.copy_to(memory);
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
