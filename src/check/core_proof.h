#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/fault_proof.h"
#include "ir/ir.h"
#include "simulator/faults/program_faults.h"
#include "simulator/machine/machine.h"

// Whether the simulator finds the faults that are seeded into kernels for cores with explicit
// memories.
namespace tilewright::checks {

// What one run of the kernels made.
struct CoreRun {
  simulator::MachineReport report;
  std::string mismatch;  // of its results; empty: they are right
  std::size_t bits = 0;  // a number that stands for all bits of them
};
// Runs them on one case's inputs, from any thread: in the program that launches them, where there
// is one, perhaps with a change of it.
using CoreCase = std::function<CoreRun(const std::vector<ir::Kernel>& kernels,
                                       const simulator::MachineOptions& options,
                                       const simulator::ProgramMutant* change)>;
// The same on inputs that are not drawn as usual: `how`, such as "Q lies 256 from zero".
struct UnusualCoreCase {
  std::string how;
  CoreCase run;
};
// Those of a program: of the bound one, and of what was recorded.
using ProgramChanges = std::vector<simulator::ProgramMutant>;

// What is seeded, in the order of the kinds' numbers.
std::vector<const simulator::FaultKind*> core_kinds(bool of_programs);

// All of the kernels, by kernel, kind and place, then those of the program: none is run. `subject`
// is the kernel's number, or their number for the program.
std::vector<MutantResult> list_core_mutants(const std::vector<ir::Kernel>& kernels,
                                            const ProgramChanges& of_program = {});

// Runs every mutant on one case after the other, the last one first, which should be the cheapest,
// each under `options.schedules` seeds, until a fault shows. What is in order is told by events
// alone, whatever the seed, so that clean runs leave no order in which something is found: where
// the results are the kernel's own bit for bit too, a mutant of events is equivalent. What neither
// shows nor is equivalent is run on unusual inputs too, on those of them on which the kernels are
// right. Raises where they are not clean on a usual one that is run.
std::vector<MutantResult> prove_cores(const std::vector<ir::Kernel>& kernels,
                                      const std::vector<CoreCase>& cases,
                                      const std::vector<UnusualCoreCase>& unusual,
                                      const ProofOptions& options,
                                      const ProgramChanges& of_program = {},
                                      const std::function<void(std::int64_t)>& begin = {},
                                      const Advance& advance = {});

// Of outputs, for CoreRun.
std::size_t bits_of(const std::vector<HostTensor>& tensors);

}  // namespace tilewright::checks
