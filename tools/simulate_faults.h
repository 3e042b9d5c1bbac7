#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/coverage.h"
#include "check/program_proof.h"
#include "command.h"
#include "compiler/build.h"
#include "compiler/target.h"
#include "library/kernel_source.h"
#include "library/program_simulation.h"
#include "library/workload.h"
#include "simulation_report.h"

namespace tilewright::tools {

// The machine forms that may ship, and workloads with sizes for them where none are set.
struct Subject {
  std::vector<ir::Kernel> forms;
  std::vector<library::Workload> workloads;
  // So many of them are the usual ones; those behind run on more multiprocessors.
  std::size_t usual = 0;
  // Of --faults, what would stand behind.
  std::vector<std::function<library::Workload()>> further;
  std::vector<std::string> sizes;  // of each workload, then of the further ones: "keys=496"
  // What else there is, shortest first, and its sizes.
  std::vector<std::function<library::Workload()>> candidates;
  std::vector<std::string> candidate_sizes;
  // Of the first form and of those sizes that were looked at, by their numbers.
  std::map<std::size_t, checks::CoveredRun> further_runs, candidate_runs;
  checks::Coverage coverage;  // of all of them, of the first form
};
Subject subject_of(const Request& request, const library::KernelSource& source,
                   const compiler::Target& target);

// Operations of the kernel that none of the sizes comes to, and barriers that hardly turn.
void print_unreached(const Subject& subject);

// `simulate --faults`.
int simulate_faults(const Request& request, const library::KernelSource& source,
                    const compiler::Target& target);
// The same of a core with explicit memories.
int simulate_core_faults(const Request& request, const library::KernelSource& source,
                         const compiler::Target& target);
// Of a program, bound with what is said of each case; a wrong result is one that differs from that
// of the program itself.
int simulate_core_faults(const Request& request, const std::vector<checks::ProgramCase>& cases,
                         const std::vector<std::string>& sizes,
                         const std::vector<ir::Kernel>& kernels, const compiler::Target& target);
// With what the machine forms ask for beside.
simulator::Rebind with_owned(simulator::Rebind rebind, const std::vector<ir::Kernel>& machine);
// What the request says of mutants: how they are run, and which. `counts`: how many mutants each
// form has; those of --mutants that are `form`'s.
checks::ProofOptions proof_options(const Request& request);
std::optional<std::set<std::size_t>> wanted_mutants(const Request& request,
                                                    const std::vector<std::size_t>& counts,
                                                    std::size_t form);
// Of --list-mutants: those of all forms, one form after the other. Each with the kernel that it is
// of, where it is of one: the same mutant of the same kernel need not be run twice.
int print_mutants(const std::vector<std::vector<checks::MutantResult>>& of_forms,
                  const std::vector<std::vector<ir::Kernel>>& kernels);
// What decides a division that no case does, and its sizes.
struct Candidates {
  checks::CaseMakers cases;
  std::vector<std::string> sizes;
};
// `sizes`: of each case, where they are shrunken.
int simulate_program_faults(const Request& request, const std::vector<checks::ProgramCase>& cases,
                            const std::vector<std::vector<ir::Kernel>>& forms, const Title& title,
                            const std::vector<std::string>& sizes = {}, bool all_of_kernels = false,
                            const Candidates& candidates = {});

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b);
// Whether the setting "name=value" is of a length.
bool is_length(const LibraryKernel& entry, const std::string& setting);

}  // namespace tilewright::tools
