#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "check/fault_proof.h"
#include "ir/program.h"
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

// Kernels first in each kind. What is recorded differs from the bound program where that reads,
// repeats and chooses.
ProgramMutants program_mutants_of(const ir::Program& program, const ir::Program& recorded,
                                  const std::vector<ir::Kernel>& kernels, bool all_of_kernels);
// Behind those of so many kernels.
void add(std::vector<simulator::ProgramMutant> mutants, std::size_t kernels, ProgramMutants& all);
// Of a mutant of the program: whether it changes an order alone.
bool is_of_order(const simulator::ProgramMutant& mutant);
// What a run says to such a mutant before it begins.
simulator::Fault refusal_of(const Error& error);
// Those of options.part, and of options.mutants.
void keep_part(const ProofOptions& options, ProgramMutants& all);

}  // namespace tilewright::checks
