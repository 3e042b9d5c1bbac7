#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/fault_proof.h"
#include "ir/program.h"
#include "library/program_simulation.h"
#include "simulator/faults/program_faults.h"
#include "simulator/machine/machine.h"

// Whether the simulated GPUs find the faults that are seeded into a program.
namespace tilewright::checks {

// The kinds that a program is proven by, in the order of their numbers: those of kernels that are
// about signals, or all of them, and those of programs (simulator/faults/program_faults.h).
std::vector<const simulator::FaultKind*> proof_kinds(bool all_of_kernels = false);

// All of the program and its kernels, kernels first in each kind, and of what was recorded where
// the program was bound from that: none is run.
std::vector<MutantResult> list_mutants(const ir::Program& program,
                                       const std::vector<ir::Kernel>& kernels,
                                       bool all_of_kernels = false,
                                       const ir::Program& recorded = {});

// A bound program, how it is executed, and what its buffers hold before, of each rank each
// buffer's.
struct ProgramCase {
  ir::Program program;
  simulator::MachineOptions machine;
  library::ProgramTensors before;
  // What they hold before runs with values, where that takes time to make and `before` has lengths
  // and numbers alone.
  std::function<library::ProgramTensors()> valued = {};
  // Whether one cluster at a time executes each launch.
  bool one_cluster = false;
  // Whether it is there for what the others do not come to.
  bool further = false;
  // Whether callers use their tensors between the runs (library::with_callers).
  bool has_callers = false;
  // What was recorded, where it says what runs do, and how it is bound.
  ir::Program recorded = {};
  simulator::Rebind rebind = {};
};
// On what a ProgramMemory of the next seed holds.
ProgramCase program_case(const ir::Program& program, const simulator::MachineOptions& machine,
                         std::uint64_t seed);

using CaseMakers = std::vector<std::function<ProgramCase()>>;

// Whether its operations wait for others. Such a program is proven as a whole.
bool has_waits(const ir::Program& program);

// As prove_by_faults, on the cases in their order: one recording that is bound to several sizes, of
// which `kernels` are the machine forms. options.launches are the program's runs; the faults of its
// kernels are those about signals unless it is told otherwise. A wrong result is one that differs
// from that of the program without a fault. `candidates` are for a division that no case decides;
// they are numbered behind the cases.
std::vector<MutantResult> prove_program(const std::vector<ProgramCase>& cases,
                                        const std::vector<ir::Kernel>& kernels,
                                        const ProofOptions& options,
                                        const std::function<void(std::int64_t)>& begin = {},
                                        const Advance& advance = {}, bool all_of_kernels = false,
                                        const CaseMakers& candidates = {});

}  // namespace tilewright::checks
