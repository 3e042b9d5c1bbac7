#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/fault_proof.h"
#include "check/input_changes.h"
#include "ir/ir.h"
#include "library/accuracy.h"
#include "library/workload.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "tilewright/error.h"

namespace tilewright::checks {

using WorkloadNumbers = std::vector<std::size_t>;

// What runs of a kernel have shown.
struct MutantRun {
  simulator::Fault fault;  // of the first schedule that shows one; no kind: all are clean
  std::size_t workload = 0;
  std::uint64_t seed = 0;
  // What depends on the order of the work: whatever it is, or what CTAs find in words alone.
  std::string timing = {}, words = {};
  simulator::ArrivalsInTime arrivals = {};
  std::set<std::size_t> order_dependent = {};  // workloads in which something does
  std::int64_t phases = 0;  // of mbarriers that a kernel without a change completes
  std::vector<std::vector<std::uint16_t>> written = {};  // MachineReport::written
  std::int64_t taken = 0;                                // MachineReport

  bool clean() const { return fault.kind.empty(); }
  void add_timing(const MutantRun& other) {
    if (timing.empty()) timing = other.timing;
    if (words.empty()) words = other.words;
    if (!other.timing.empty() || !other.words.empty()) order_dependent.insert(other.workload);
    arrivals.join(other.arrivals);
  }
};

// What one thread runs the mutants of a kernel on. Each answer follows from the kernel, the
// workloads and the options alone, whatever was run before.
class MutantRunner {
 public:
  MutantRunner(const ir::Kernel& machine, const std::vector<library::Workload>& workloads,
               const ProofOptions& options);

  const WorkloadNumbers& usual() const { return usual_; }
  const WorkloadNumbers& further() const { return further_; }
  bool draws() const { return draws_; }

  // Raises where the kernel itself shows a fault.
  void require_clean();
  // Whether it changes computations alone of which a run without arithmetic computes none. All its
  // schedules are then those of the kernel, with the same results.
  bool changes_values_alone(const simulator::Mutant& mutant);
  // Without the workloads in which the mutant's quotient is the kernel's each time: a run is the
  // kernel's own there.
  WorkloadNumbers that_tell(const simulator::Mutant& mutant, WorkloadNumbers workloads);
  // Those of the workloads that come to it.
  WorkloadNumbers that_reach(const simulator::Mutant& mutant, const WorkloadNumbers& workloads);
  // Further ones that may come to it: none that comes to it is left out.
  WorkloadNumbers that_may_reach(const simulator::Mutant& mutant);
  bool unusual_reaches(const simulator::Mutant& mutant);
  WorkloadNumbers cheapest_first(WorkloadNumbers workloads);
  // For the next mutant.
  void begin_mutant() { bits_.clear(); }
  // Whether its results were the kernel's on all inputs so far, bit for bit.
  bool same_bits();

  // Several schedules of each, with values: one where nothing depends on the order of the work.
  // What takes least time comes first, here and below.
  MutantRun run(const ir::Kernel& kernel, const WorkloadNumbers& workloads, std::int64_t schedules);
  // One launch of each, with values: of what changes nothing else. The order is the kernel's.
  MutantRun run_launch(const ir::Kernel& kernel, const WorkloadNumbers& workloads);
  // A schedule of each without values, which most faults need none of: one for each number of
  // places that clusters take over.
  MutantRun run_order(const ir::Kernel& kernel, const WorkloadNumbers& workloads);
  // Of what a rule calls equivalent: a schedule of each usual workload, with values of the first.
  MutantRun run_equivalent(const ir::Kernel& kernel);
  // On one workload after the other (run_held of fault_proof.h). Each has half of the operations
  // that those before have left.
  MutantRun run_held(const ir::Kernel& kernel, const WorkloadNumbers& workloads);
  // Of a division or a bound: on the candidates in which it makes another number, one after the
  // other.
  MutantRun run_candidates(const ir::Kernel& kernel, const simulator::Mutant& mutant);
  // On unusual inputs. One lies far from zero: what does not exist, which reads
  // as zeros, then is by far the largest element, or the smallest, and outlives even what forgives
  // a wrong shift. Or one grows along an axis: what a kernel does when a later block has larger
  // elements. Inputs on which rounding alone makes the kernel itself wrong are left out.
  MutantRun run_unusual(const ir::Kernel& kernel, const WorkloadNumbers& workloads,
                        bool check_order = true);
  // Many more schedules, without arithmetic, on one workload after the other under each seed. The
  // further ones are large: they have so many at most.
  MutantRun run_control(const ir::Kernel& kernel, const WorkloadNumbers& workloads,
                        std::int64_t schedules, std::int64_t of_further);

 private:
  // Inputs that are not drawn as usual.
  struct Unusual {
    library::Workload workload;
    library::Reference reference;
    std::string how;
    std::size_t bits = 0;  // of what the kernel without a change makes of them
  };
  // What the kernel without a change does on a workload.
  struct Own {
    std::int64_t phases = 0;
    std::vector<std::vector<std::uint16_t>> written;
  };
  // A workload, and how it is run.
  struct Way {
    std::size_t workload = 0;
    bool control_only = false;
    std::optional<std::int64_t> takes = {};  // MachineOptions
    bool operator<(const Way& other) const {
      return std::tie(workload, control_only, takes) <
             std::tie(other.workload, other.control_only, other.takes);
    }
  };
  struct Executed {
    std::vector<bool> known;  // of each operation: whether a run shows it being executed
    std::vector<bool> is;     // by a launch without arithmetic, or one with it
    std::vector<bool> divisor_tells, less_tells, remainder_tells;  // Coverage
    std::int64_t count = 0;                                        // of operations of warps
  };
  struct Bits {
    std::size_t workload = 0;
    std::size_t changed = 0;              // of what the mutant makes
    std::optional<std::size_t> own = {};  // of what the kernel does, where it is known
  };

  MutantRun run(const ir::Kernel& kernel, std::size_t number, std::uint64_t seed,
                std::optional<std::int64_t> takes);
  MutantRun run_launches(const ir::Kernel& kernel, std::size_t number,
                         simulator::MachineOptions machine);
  MutantRun run_values(const ir::Kernel& kernel, std::size_t number, Unusual& unusual,
                       bool check_order);
  MutantRun compared(std::size_t number, std::uint64_t seed);
  MutantRun compared_with_own(std::size_t number, std::uint64_t seed);
  bool is_own(const ir::Kernel& kernel) const { return &kernel == &machine_; }
  const Own& own_of(const Way& way);
  // Raises OwnFault where the kernel without a change makes something else than its reference says.
  std::size_t own_bits(std::size_t number);
  const Executed& executed_of(std::size_t number);
  const CoveredRun* known_run(std::size_t number) const;  // or none
  const std::vector<InputChange>& input_changes();
  // Null: the kernel itself is wrong there, or nothing is changed.
  Unusual* unusual_of(std::size_t number, std::size_t change);
  library::Workload& made_workload(std::size_t number);
  simulator::MachineReport launch(const ir::Kernel& kernel, std::size_t number,
                                  const simulator::MachineOptions& machine);
  // Of the number's sizes.
  simulator::MachineReport launch(const ir::Kernel& kernel, library::Workload& workload,
                                  std::size_t number, simulator::MachineOptions machine);
  std::int64_t multiprocessors_of(std::size_t number) const;

  const ir::Kernel& machine_;
  const bool draws_;
  const std::vector<std::optional<std::int64_t>> takes_;  // MachineOptions
  const std::int64_t launches_;
  std::vector<library::Workload> workloads_;  // without a kernel: not made yet
  const WorkloadNumbers usual_, further_, candidates_;
  std::vector<library::Reference> references_;  // none yet: empty
  std::map<Way, Own> own_;
  std::map<std::size_t, std::size_t> own_bits_;  // by workload
  std::optional<std::vector<InputChange>> input_changes_;
  // By workload and by the number of the change.
  std::map<std::pair<std::size_t, std::size_t>, std::optional<Unusual>> unusual_;
  std::vector<std::optional<Executed>> executed_;
  std::vector<bool> left_out_;  // of each operation of the kernel
  std::vector<Bits> bits_;
  const ProofOptions& options_;
};

}  // namespace tilewright::checks
