#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/coverage.h"
#include "ir/ir.h"
#include "library/workload.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "tilewright/error.h"

// Whether the simulated GPU finds the faults that are seeded into a kernel.
namespace tilewright::checks {

struct ProofOptions {
  std::uint64_t seed = 0;      // of the first schedule
  std::int64_t schedules = 4;  // of each usual workload, with values
  // Without arithmetic, of each usual workload that comes to a mutant which has not shown, and in
  // which something depends on the order of the work: so many, or `few` once all together have
  // executed so many operations of warps.
  std::int64_t more = 1000;
  std::int64_t few = 8;
  std::int64_t drawn = 32;  // instead of `more`, where conditions depend on nothing but data
  std::int64_t operations = 10'000'000;  // some seconds
  std::int64_t launches = 2;             // one after the other, in each schedule
  unsigned threads = 0;                  // 0: one for each core
  // Further workloads, numbered behind the usual ones and made when one is run: for mutants that
  // none of those comes to, and `few` schedules of each for one that has not shown.
  std::vector<std::function<library::Workload()>> further;
  // And sizes behind these for a division or a bound that none of them decides: as many as execute
  // so many operations of warps, with arithmetic.
  std::vector<std::function<library::Workload()>> candidates;
  std::int64_t to_divide = 1'000'000;
  // What runs of further workloads and of candidates came to without arithmetic, where it is known.
  std::map<std::size_t, CoveredRun> further_runs, candidate_runs;
  // Of a program's further cases as many are run as execute so many without the change, but for
  // what no other case comes to.
  std::int64_t of_further = 3'000'000;
  // Only the mutants of every `parts`-th place, from number `part` on: the parts are disjoint, and
  // together all mutants.
  std::size_t part = 0, parts = 1;
  // Of these, only the mutants with such numbers in the order of list_mutants.
  std::optional<std::set<std::size_t>> mutants;
};

struct MutantResult {
  enum class Verdict : std::uint8_t {
    caught,
    rejected,    // by the verifier, or before the first instruction
    equivalent,  // `reason` says by which rule; its runs are clean
    unreached,   // no workload executes the operation
    undecided,   // neither found, nor told by a rule; `reason` says why none does
  };
  const simulator::FaultKind* kind = nullptr;
  simulator::Mutant mutant;
  std::size_t subject = 0;  // of a program: the kernel's number, or their number for the program
  Verdict verdict = Verdict::undecided;
  std::string reason;
  simulator::Fault fault;    // caught: "mismatch" is a wrong result. rejected: the refusal
  std::size_t workload = 0;  // that shows it, and
  std::uint64_t seed = 0;    // its schedule
  bool right_class = false;
  bool both_lines = false;
  std::string shown_by;  // caught in another way than the mutant's change: in which
};

// Raised where what has no change is wrong, so that nothing is the mutant's.
struct OwnFault {
  Error error;
};

// Told of each mutant that is judged, from any thread.
using Advance = std::function<void(const MutantResult&)>;

// Whether a fault of the kind may show in results alone.
bool shows_in_values(const simulator::FaultKind& kind);

// Of one that is undecided: judges the same fault in its other ways (Mutant::others), until one of
// them is caught, which is the result then.
void for_other_ways(MutantResult& result, const std::function<void(MutantResult&)>& judge);
// Whether it is seeded into a quotient or a remainder, which then is another one.
bool is_division(const simulator::Mutant& mutant);
// Whether it is to be run in more sizes, where the usual ones decide nothing: what is off by one
// matters at an edge.
bool is_off_by_one(const simulator::Mutant& mutant);

// All of the kernel, by kind and then by place: none is run.
std::vector<MutantResult> list_mutants(const ir::Kernel& machine);

// Tells kernels from each other that differ in more than a name.
std::string form_of(ir::Kernel kernel);

// A changed kernel may never come to its end: how many operations warps execute before it is taken
// to do so, where without the change they execute `usual`.
std::int64_t most_operations(std::int64_t usual);
// The run's report; a run that comes to MachineOptions::max_operations has a deadlock. What ends it
// since it is not defined, such as a division by zero, is a fault too, unless the caller has
// another word for it.
simulator::MachineReport report_of(const std::function<simulator::MachineReport()>& run,
                                   bool finds_refusals = true);

// Schedules without arithmetic in which one warp comes to an arrival on an mbarrier and stays there
// until nothing else can go on: one for each arrival, or as many as execute so many operations.
struct HeldRun {
  simulator::Fault fault;  // of the first that shows one
  std::uint64_t seed = 0;
  std::int64_t operations = 0;  // of all of them
};
HeldRun run_held(
    std::int64_t operations,
    const std::function<simulator::MachineReport(const simulator::MachineOptions&)>& run);

// Whether a condition of the kernel depends on what it computes in registers. A run without
// arithmetic then draws it.
bool draws_conditions(const ir::Kernel& machine);

// Runs every mutant of the machine form on one workload after the other until a fault shows, on as
// many multiprocessors as a cluster has CTAs. Same options, same results, whatever the threads.
//
// Where nothing depends on the order of the work (simulator/machine/timing.h), one run of a
// workload stands for all its schedules. A mutant that breaks an order alone, and whose runs are
// clean on every workload that comes to it, is then equivalent: what it leaves out is ordered all
// the same. Where something does depend on it, no number of schedules makes a mutant equivalent.
//
// Raises when the kernel itself is not clean. `begin` is told how many mutants there are.
std::vector<MutantResult> prove_by_faults(const ir::Kernel& machine,
                                          const std::vector<library::Workload>& workloads,
                                          const ProofOptions& options,
                                          const std::function<void(std::int64_t)>& begin = {},
                                          const Advance& advance = {});

}  // namespace tilewright::checks
