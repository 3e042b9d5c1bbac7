#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check/fault_proof.h"
#include "ir/program.h"
#include "simulator/machine/machine.h"

// Whether the simulated GPUs find the faults that are seeded into a program.
namespace tilewright::checks {

// The kinds that a program is proven by, in the order of their numbers: those of kernels that are
// about signals, or all of them, and those of programs (simulator/faults/program_faults.h).
std::vector<const simulator::FaultKind*> proof_kinds(bool all_of_kernels = false);

// As prove_by_faults: options.launches are the program's runs, and `machine` says how it is
// executed; the faults of its kernels are those about signals unless it is told otherwise. A wrong
// result is one that differs from that of the program without a fault.
std::vector<MutantResult> prove_program(const ir::Program& program,
                                        const std::vector<ir::Kernel>& kernels,
                                        const simulator::MachineOptions& machine,
                                        const ProofOptions& options,
                                        const std::function<void(std::int64_t)>& begin = {},
                                        const std::function<void()>& advance = {},
                                        bool all_of_kernels = false);

}  // namespace tilewright::checks
