#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "library/accuracy.h"
#include "simulator/machine/machine.h"
#include "tilewright/host_tensor.h"

namespace tilewright::library {

// Of each rank, each buffer's.
using ProgramTensors = std::vector<std::vector<HostTensor>>;

// What the program's explicit kernels are written for; the default where it has none.
std::string target_of(const ir::Program& program);
// The machine forms of the program's kernels, in their order. Where an assembler's report settles
// which form of a kernel ships there are several such lists, which together hold all of them. What
// the authors claim is checked.
std::vector<std::vector<ir::Kernel>> machine_forms(const ir::Program& program,
                                                   std::string_view target,
                                                   const compiler::MachineOptions& options = {});

// Executes the program so many times in a row on virtual GPUs, one for each rank. `after`, unless
// it is null, becomes what the buffers then hold.
simulator::MachineReport simulate_program(const ir::Program& program,
                                          const std::vector<ir::Kernel>& machine,
                                          const ProgramTensors& before, ProgramTensors* after,
                                          const simulator::MachineOptions& options,
                                          std::int64_t runs);

// An operation of the library that is a program, at some sizes.
struct ProgramWorkload {
  Workload workload;
  ir::Program program;  // bound to the workload's tensors
  // What its buffers hold before it runs; and the workload's tensors as they are behind that.
  ProgramTensors before() const;
  void take(const ProgramTensors& after);
};
// With what callers do to the tensors of a bound program of several ranks between its runs: before
// each run a stream of theirs reads and writes all of them. A program without signals leaves it to
// callers to order the ranks, and of one rank nothing races with callers: it stays as it is.
ir::Program with_callers(ir::Program program);
// The recorded program on the workload's tensors.
ir::Program bind_workload(const ir::Program& recorded, const Workload& workload,
                          std::int64_t multiprocessors);

// The buffers against those of another execution of the program; bits that are the same, NaN too,
// are no difference. Allowed is what different orders of sums may make of a buffer's dtype.
Comparison compare_buffers(const ir::Program& program, const ProgramTensors& got,
                           const ProgramTensors& wanted);

}  // namespace tilewright::library
