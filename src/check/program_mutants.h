#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "check/fault_proof.h"
#include "simulator/faults/program_faults.h"

// What is seeded into a program and its kernels.
namespace tilewright::checks {

// A mutant of the program, or of one of its kernels.
struct Seeded {
  std::optional<simulator::ProgramMutant> program;
  std::size_t kernel = 0;  // else
};

struct ProgramMutants {
  std::vector<Seeded> seeded;
  std::vector<MutantResult> results;  // of each, not judged yet
};

// Kernels first in each kind.
ProgramMutants program_mutants_of(const ir::Program& program,
                                  const std::vector<ir::Kernel>& kernels, bool all_of_kernels);
// Those of options.part, and of options.mutants.
void keep_part(const ProofOptions& options, ProgramMutants& all);

}  // namespace tilewright::checks
