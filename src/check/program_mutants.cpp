#include "check/program_mutants.h"

#include <algorithm>
#include <utility>

#include "check/program_proof.h"
#include "simulator/faults/sites.h"

namespace tilewright::checks {

using simulator::FaultKind;

void add(std::vector<simulator::ProgramMutant> mutants, std::size_t kernels, ProgramMutants& all) {
  for (simulator::ProgramMutant& mutant : mutants) {
    MutantResult& result = all.results.emplace_back();
    result.kind = mutant.kind;
    result.mutant.where = mutant.where;
    result.mutant.site = mutant.site;
    result.subject = kernels;
    result.mutant.operation = mutant.operation;
    result.mutant.change = mutant.change;
    all.seeded.emplace_back().program = std::move(mutant);
  }
}

// Waits and words show in the order as well; what zeros are for, and what is done, does not.
bool is_of_order(const simulator::ProgramMutant& mutant) {
  return !mutant.record && mutant.kind->classes.size() > 1;
}

simulator::Fault refusal_of(const Error& error) {
  return {"out_of_bounds", error.location(), {}, error.message(), {}};
}

ProgramMutants program_mutants_of(const ir::Program& program, const ir::Program& recorded,
                                  const std::vector<ir::Kernel>& kernels, bool all_of_kernels) {
  ProgramMutants all;
  std::vector<simulator::Sites> sites;
  sites.reserve(kernels.size());
  for (const ir::Kernel& kernel : kernels) sites.emplace_back(kernel);
  for (const FaultKind* kind : proof_kinds(all_of_kernels)) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      for (simulator::Mutant& mutant : simulator::mutants_of(*kind, sites[i])) {
        MutantResult& result = all.results.emplace_back();
        result.kind = kind;
        result.mutant = std::move(mutant);
        result.mutant.operation += " of " + kernels[i].name;
        result.subject = i;
        all.seeded.emplace_back().kernel = i;
      }
    }
  }
  add(simulator::program_mutants(program, recorded), kernels.size(), all);
  return all;
}

void keep_part(const ProofOptions& options, ProgramMutants& all) {
  std::size_t kept = 0;
  for (std::size_t i = options.part; i < all.results.size(); i += options.parts) {
    if (options.mutants && options.mutants->count(i) == 0) continue;
    std::swap(all.seeded[kept], all.seeded[i]);
    std::swap(all.results[kept], all.results[i]);
    ++kept;
  }
  all.seeded.resize(kept);
  all.results.resize(kept);
}

std::vector<const FaultKind*> proof_kinds(bool all_of_kernels) {
  std::vector<const FaultKind*> list;
  for (const FaultKind& kind : simulator::fault_kinds()) {
    if (all_of_kernels || kind.number == 23 || kind.number == 24) list.push_back(&kind);
  }
  for (const FaultKind& kind : simulator::program_fault_kinds()) list.push_back(&kind);
  return list;
}

std::vector<MutantResult> list_mutants(const ir::Program& program,
                                       const std::vector<ir::Kernel>& kernels, bool all_of_kernels,
                                       const ir::Program& recorded) {
  return program_mutants_of(program, recorded, kernels, all_of_kernels).results;
}

bool has_waits(const ir::Program& program) {
  return std::any_of(program.operations.begin(), program.operations.end(), [](const auto& each) {
    return each.kind == ir::ProgramOperation::Kind::wait ||
           each.kind == ir::ProgramOperation::Kind::wait_event;
  });
}

}  // namespace tilewright::checks
