#include "check/fault_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "check/coverage.h"
#include "check/shrunken_sizes.h"
#include "compiler/simulation.h"
#include "library/accuracy.h"
#include "simulator/machine/recorder.h"
#include "support/diagnostic.h"
#include "support/parallel.h"
#include "target/verify.h"

namespace tilewright::checks {
namespace {

using Verdict = MutantResult::Verdict;
using simulator::MachineReport;
using Numbers = std::vector<std::size_t>;  // of workloads

struct Run {
  simulator::Fault fault;  // of the first schedule that shows one; no kind: all are clean
  std::size_t workload = 0;
  std::uint64_t seed = 0;
  // What hangs on the order of the work: whatever it is, or what CTAs find in words alone.
  std::string timing = {}, words = {};
  std::set<std::size_t> hanging = {};  // workloads in which something does
  std::int64_t phases = 0;             // of mbarriers that a kernel without a change completes

  bool clean() const { return fault.kind.empty(); }
  void add_timing(const Run& other) {
    if (timing.empty()) timing = other.timing;
    if (words.empty()) words = other.words;
    if (!other.timing.empty() || !other.words.empty()) hanging.insert(other.workload);
  }
};

bool is_of(const simulator::FaultKind& kind, const simulator::Fault& fault) {
  return std::find(kind.classes.begin(), kind.classes.end(), fault.kind) != kind.classes.end();
}

bool shows_in_values(const simulator::FaultKind& kind) {
  return std::find(kind.classes.begin(), kind.classes.end(), "mismatch") != kind.classes.end();
}

// Counts the phases that mbarriers complete.
class Phases : public simulator::Recorder {
 public:
  void phase_completed(const simulator::Cta&, int) override { ++count; }
  std::int64_t count = 0;
};

// A number that stands for all bits of the outputs.
std::size_t bits_of(const library::Workload& workload) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const HostTensor& tensor = workload.tensors[i];
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes());
    bits = bits * 1000003 + std::hash<std::string_view>()(bytes);
  }
  return bits;
}

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
  std::size_t bits = 0;  // where it runs with values
};

// What one thread runs the mutants of a kernel on.
class Runner {
 public:
  Runner(const ir::Kernel& machine, const std::vector<library::Workload>& workloads,
         const ProofOptions& options)
      : machine_(machine),
        workloads_(workloads),
        usual_(numbers(0, workloads.size())),
        further_(numbers(workloads.size(), workloads.size() + options.further.size())),
        options_(options) {
    workloads_.resize(usual_.size() + further_.size());
    references_.resize(workloads_.size());
    unusual_workloads_.resize(workloads_.size());
    executed_.resize(workloads_.size());
  }

  const Numbers& usual() const { return usual_; }
  const Numbers& further() const { return further_; }
  bool draws() const { return draws_conditions(machine_); }

  // Whether it changes computations alone of which a run without arithmetic computes none. All its
  // schedules are then those of the kernel, with the same results.
  bool changes_values_alone(const simulator::Mutant& mutant) {
    if (mutant.computations.empty()) return false;
    if (left_out_.empty()) {
      left_out_ = simulator::computations_left_out(machine_, workloads_.front().arguments(),
                                                   shrunken_multiprocessors(machine_));
    }
    return std::all_of(mutant.computations.begin(), mutant.computations.end(),
                       [&](std::size_t number) { return left_out_[number]; });
  }
  // Without the workloads in which the mutant's quotient is the kernel's each time: a run is the
  // kernel's own there.
  Numbers that_tell(const simulator::Mutant& mutant, Numbers workloads) {
    using Division = simulator::Mutant::Division;
    if (mutant.division == Division::none) return workloads;
    const auto is_same = [&](std::size_t i) {
      const Executed& executed = executed_of(i);
      const bool one_more = mutant.division == Division::by_one_more;
      return executed.known[mutant.site] &&
             !(one_more ? executed.divisor_tells : executed.remainder_tells)[mutant.site];
    };
    workloads.erase(std::remove_if(workloads.begin(), workloads.end(), is_same), workloads.end());
    return workloads;
  }
  // For the next mutant: whether its results were the kernel's so far, bit for bit.
  void begin_bits() { same_bits_ = true; }
  bool same_bits() const { return same_bits_; }

  // Several schedules of each, with values: one where nothing hangs on the order of the work.
  Run run(const ir::Kernel& kernel, const Numbers& workloads, std::int64_t schedules) {
    Run all;
    for (const std::size_t i : workloads) {
      for (std::int64_t schedule = 0; schedule < schedules; ++schedule) {
        Run found = run(kernel, i, options_.seed + static_cast<std::uint64_t>(schedule));
        if (!found.clean()) return found;
        all.add_timing(found);
        if (found.timing.empty() && found.words.empty()) break;
      }
    }
    return all;
  }
  // One launch of each, with values: of what changes nothing else. The order is the kernel's.
  Run run_launch(const ir::Kernel& kernel, const Numbers& workloads) {
    simulator::MachineOptions machine = with_seed(options_.seed);
    machine.check_order = false;
    for (const std::size_t i : workloads) {
      MachineReport report = launch(kernel, i, machine);
      if (!report.ok()) return {std::move(report.faults.front()), i, options_.seed};
      Run found = compared(i, options_.seed);
      if (!found.clean()) return found;
      note_bits(i, bits_of(workloads_[i]));
    }
    return {};
  }
  // A schedule of each without values, which most faults need none of.
  Run run_order(const ir::Kernel& kernel, const Numbers& workloads) {
    simulator::MachineOptions machine = with_seed(options_.seed);
    machine.control_only = machine.timing = true;
    Run all;
    for (const std::size_t i : workloads) {
      Run found = run_launches(kernel, i, machine);
      if (!found.clean()) return found;
      all.add_timing(found);
    }
    return all;
  }
  // Of what a rule calls equivalent: a schedule of each usual workload, with values of the first.
  Run run_equivalent(const ir::Kernel& kernel) {
    Run found = run(kernel, usual_.front(), options_.seed);
    return found.clean() ? run_order(kernel, {usual_.begin() + 1, usual_.end()}) : found;
  }
  // On inputs of which one lies far from zero: what does not exist, which reads as zeros, then is
  // by far the largest element, or the smallest, and outlives even what forgives a wrong shift. And
  // on inputs that grow along an axis: what a kernel does when a later block has larger elements.
  Run run_unusual(const ir::Kernel& kernel, const Numbers& workloads, bool check_order = true) {
    for (const std::size_t i : workloads) {
      for (Unusual& unusual : unusual_of(i)) {
        Run found = run_values(kernel, i, unusual, check_order);
        if (found.clean()) {
          same_bits_ = same_bits_ && bits_of(unusual.workload) == unusual.bits;
          continue;
        }
        found.fault.message += "\n  where " + unusual.how;
        return found;
      }
    }
    return {};
  }
  bool unusual_reaches(const simulator::Mutant& mutant) {
    const ir::Kernel probe = mutant.probe(machine_);
    for (const std::size_t i : usual_) {
      for (Unusual& unusual : unusual_of(i)) {
        if (!launch(probe, unusual.workload, i, with_seed(options_.seed)).ok()) return true;
      }
    }
    return false;
  }
  // Many more schedules, without arithmetic, on one workload after the other under each seed. The
  // further ones are large: they have but a few where usual ones come to the mutant.
  Run run_control(const ir::Kernel& kernel, const Numbers& workloads, std::int64_t schedules,
                  bool usual_reaches) {
    simulator::MachineOptions machine;
    machine.control_only = true;
    std::int64_t operations = 0;
    for (std::int64_t schedule = 0; schedule < schedules; ++schedule) {
      if (schedule >= options_.few && operations >= options_.operations) break;
      machine.seed = options_.seed + static_cast<std::uint64_t>(schedule);
      for (const std::size_t i : workloads) {
        if (i >= usual_.size() && schedule >= options_.few && usual_reaches) continue;
        MachineReport report = launch(kernel, i, machine);
        operations += report.operations;
        if (!report.ok()) return {std::move(report.faults.front()), i, machine.seed};
      }
    }
    return {};
  }
  // Those of the workloads that come to it.
  Numbers that_reach(const simulator::Mutant& mutant, const Numbers& workloads) {
    const ir::Kernel probe = mutant.probe(machine_);
    const bool wherever = mutant.matters_if == ir::kNoValue && !mutant.in_later_turns;
    Numbers reached;
    for (const std::size_t i : workloads) {
      const Executed& executed = executed_of(i);
      if (wherever && executed.known[mutant.site]) {
        if (executed.is[mutant.site]) reached.push_back(i);
        continue;
      }
      simulator::MachineOptions machine = with_seed(options_.seed);
      machine.control_only = true;
      bool comes = !launch(probe, i, machine).ok();
      machine.control_only = false;
      comes = comes || (draws() && !launch(probe, i, machine).ok());
      if (comes) reached.push_back(i);
    }
    return reached;
  }

 private:
  static Numbers numbers(std::size_t begin, std::size_t end) {
    Numbers all(end - begin);
    std::iota(all.begin(), all.end(), begin);
    return all;
  }
  Run run(const ir::Kernel& kernel, std::size_t number, std::uint64_t seed) {
    simulator::MachineOptions machine = with_seed(seed);
    machine.timing = true;
    Run found = run_launches(kernel, number, machine);
    if (!found.clean()) return found;
    const std::size_t bits = bits_of(workloads_[number]);
    Run wrong = compared(number, seed);
    wrong.timing = std::move(found.timing);
    wrong.words = std::move(found.words);
    if (&kernel != &machine_ && seed == options_.seed) note_bits(number, bits);
    return wrong;
  }
  Run compared(std::size_t number, std::uint64_t seed) {
    if (references_[number].values.empty()) references_[number] = reference_of(workloads_[number]);
    return compared(workloads_[number], references_[number], number, seed);
  }
  void note_bits(std::size_t number, std::size_t bits) {
    if (!same_bits_) return;
    simulator::MachineOptions machine = with_seed(options_.seed);
    machine.timing = true;
    same_bits_ = bits == own_of(number, machine).bits;
  }
  Run run_launches(const ir::Kernel& kernel, std::size_t number,
                   simulator::MachineOptions machine) {
    simulator::OwnedMemory owned;
    machine.owned = &owned;
    Run run{{}, number, machine.seed};
    // Before the launches, whose results stay behind.
    const bool is_changed = &kernel != &machine_;
    const std::int64_t wanted = machine.timing && is_changed ? own_of(number, machine).phases : 0;
    Phases phases;
    if (machine.timing) machine.recorder = &phases;
    for (std::int64_t i = 0; i < options_.launches; ++i) {
      machine.launch = static_cast<std::uint64_t>(i);
      MachineReport report = launch(kernel, number, machine);
      if (!report.ok()) return {std::move(report.faults.front()), number, machine.seed};
      if (run.timing.empty()) run.timing = std::move(report.timing);
      if (run.words.empty()) run.words = std::move(report.words);
    }
    run.phases = phases.count;
    // A phase that no longer comes to its end is one that a longer launch may wait for.
    if (machine.timing && is_changed && run.timing.empty() && run.phases != wanted) {
      run.timing =
          fmt::format("the {} phases of its mbarriers are {} with the change", wanted, run.phases);
    }
    return run;
  }
  const Own& own_of(std::size_t number, const simulator::MachineOptions& machine) {
    const auto [own, is_new] = own_.try_emplace(std::pair(number, machine.control_only));
    if (is_new) {
      own->second.phases = run_launches(machine_, number, machine).phases;
      if (!machine.control_only) own->second.bits = bits_of(workloads_[number]);
    }
    return own->second;
  }
  struct Executed {
    std::vector<bool> known;  // of each operation: whether a run shows it being executed
    std::vector<bool> is;     // by a launch without arithmetic, or one with it
    std::vector<bool> divisor_tells, remainder_tells;  // Coverage
    std::int64_t count = 0;                            // of operations of warps
  };
  const Executed& executed_of(std::size_t number) {
    std::optional<Executed>& made = executed_[number];
    if (made) return *made;
    made.emplace();
    library::Workload& workload = made_workload(number);
    const auto add = [&](bool control_only) {
      const Coverage coverage =
          coverage_of(machine_, workload.arguments(), multiprocessors_of(number), options_.seed,
                      made->count, control_only);
      made->known = coverage.executable;
      made->is.resize(coverage.turns.size());
      made->divisor_tells.resize(coverage.turns.size());
      made->remainder_tells.resize(coverage.turns.size());
      for (std::size_t i = 0; i < coverage.turns.size(); ++i) {
        if (coverage.turns[i] > 0) made->is[i] = true;
        if (coverage.divisor_tells[i]) made->divisor_tells[i] = true;
        if (coverage.remainder_tells[i]) made->remainder_tells[i] = true;
      }
    };
    add(true);
    if (draws()) add(false);
    return *made;
  }
  static Run compared(const library::Workload& workload, const library::Reference& reference,
                      std::size_t number, std::uint64_t seed) {
    const library::Comparison comparison = compare(workload, reference);
    if (comparison.ok()) return {{}, number, seed};
    return {{"mismatch", {}, {}, "mismatch: " + comparison.text(), {}}, number, seed};
  }
  // The workload with one of its floating inputs shifted, in either direction, or growing along one
  // of its axes. Those on which rounding alone makes the kernel itself wrong are left out.
  std::vector<Unusual>& unusual_of(std::size_t number) {
    std::optional<std::vector<Unusual>>& made = unusual_workloads_[number];
    if (made) return *made;
    made.emplace();
    const library::Workload& usual = workloads_[number];
    const auto add = [&](std::size_t input, const std::string& how, const auto& changed) {
      Unusual unusual{usual, {}, usual.kernel->tensors[input].name + " " + how};
      HostTensor& tensor = unusual.workload.tensors[input];
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        tensor.set_flat(i, changed(tensor.flat(i), i));
      }
      unusual.reference = reference_of(unusual.workload);
      if (run_values(machine_, number, unusual, /*check_order=*/false).clean()) {
        unusual.bits = bits_of(unusual.workload);
        made->push_back(std::move(unusual));
      }
    };
    constexpr double kFar = 256;  // exp(-kFar) is 0 in f32; e4m3 reaches to 448
    constexpr double kGrowth = 2;
    for (std::size_t input = 0; input < usual.tensors.size(); ++input) {
      const HostTensor& tensor = usual.tensors[input];
      if (usual.kernel->tensors[input].is_output || !is_float(tensor.dtype())) continue;
      for (const double shift : {-kFar, kFar}) {
        add(input, fmt::format("lies {} from zero", shift),
            [&](double value, std::int64_t) { return value + shift; });
      }
      std::int64_t inner = tensor.elements();
      for (std::size_t axis = 0; axis + 1 < tensor.shape().size() && inner > 0; ++axis) {
        const std::int64_t extent = tensor.shape()[axis];
        inner /= extent;
        if (extent == 1) continue;
        add(input, fmt::format("grows along axis {}", axis), [&](double value, std::int64_t i) {
          const double at = static_cast<double>(i / inner % extent);
          return value * (1 + kGrowth * at / static_cast<double>(extent - 1));
        });
      }
    }
    return *made;
  }
  static simulator::MachineOptions with_seed(std::uint64_t seed) {
    simulator::MachineOptions machine;
    machine.seed = seed;
    return machine;
  }
  Run run_values(const ir::Kernel& kernel, std::size_t number, Unusual& unusual, bool check_order) {
    simulator::MachineOptions machine = with_seed(options_.seed);
    machine.check_order = check_order;
    MachineReport report = launch(kernel, unusual.workload, number, machine);
    if (!report.ok()) return {std::move(report.faults.front()), number, options_.seed};
    return compared(unusual.workload, unusual.reference, number, options_.seed);
  }
  MachineReport launch(const ir::Kernel& kernel, std::size_t number,
                       const simulator::MachineOptions& machine) {
    return launch(kernel, made_workload(number), number, machine);
  }
  library::Workload& made_workload(std::size_t number) {
    library::Workload& workload = workloads_[number];
    if (!workload.kernel) workload = options_.further[number - usual_.size()]();
    return workload;
  }
  // Of the number's sizes.
  MachineReport launch(const ir::Kernel& kernel, library::Workload& workload, std::size_t number,
                       simulator::MachineOptions machine) {
    machine.multiprocessors = multiprocessors_of(number);
    if (&kernel != &machine_) machine.max_operations = most_operations(executed_of(number).count);
    if (!machine.control_only) workload.poison_outputs();
    return report_of([&] { return simulator::run_machine(kernel, workload.arguments(), machine); });
  }
  std::int64_t multiprocessors_of(std::size_t number) const {
    return shrunken_multiprocessors(machine_, number >= usual_.size());
  }

  const ir::Kernel& machine_;
  std::vector<library::Workload> workloads_;  // without a kernel: not made yet
  const Numbers usual_, further_;
  std::vector<library::Reference> references_;       // none yet: empty
  std::map<std::pair<std::size_t, bool>, Own> own_;  // by workload, without values or with
  std::vector<std::optional<std::vector<Unusual>>> unusual_workloads_;  // none yet: empty
  std::vector<std::optional<Executed>> executed_;
  std::vector<bool> left_out_;  // of each operation of the kernel
  bool same_bits_ = true;
  const ProofOptions& options_;
};

void find_equivalent(MutantResult& result, std::string reason) {
  result.verdict = Verdict::equivalent;
  result.reason = std::move(reason);
}

std::string why_not_wrong(const Runner& runner) {
  return runner.same_bits()
             ? "no result differs by a bit on these inputs, and no rule says that none can"
             : "results differ by less than rounding explains";
}

// The same of one that changes nothing else: the values of one schedule are those of all.
Run look_for_wrong_values(const ir::Kernel& changed, Runner& runner, MutantResult& result) {
  Run found = runner.run_launch(changed, runner.usual());
  if (!found.clean()) return found;
  const Numbers further = runner.that_reach(result.mutant, runner.further());
  if (further.empty() && runner.that_reach(result.mutant, runner.usual()).empty() &&
      !runner.unusual_reaches(result.mutant)) {
    result.verdict = Verdict::unreached;
    return found;
  }
  found = runner.run_launch(changed, further);
  if (found.clean()) found = runner.run_unusual(changed, runner.usual(), /*check_order=*/false);
  if (found.clean()) result.reason = why_not_wrong(runner);
  return found;
}

// What a mutant shows of which no rule says that it shows nothing. Else the verdict is set.
Run look_for_fault(const ir::Kernel& changed, const ProofOptions& options, Runner& runner,
                   MutantResult& result) {
  runner.begin_bits();
  if (runner.changes_values_alone(result.mutant)) {
    return look_for_wrong_values(changed, runner, result);
  }
  const bool of_values = shows_in_values(*result.kind);
  if (!of_values) {
    Run found = runner.run_order(changed, runner.usual());
    if (!found.clean()) return found;
  }
  const Numbers telling = runner.that_tell(result.mutant, runner.usual());
  Run found = runner.run(changed, telling, options.schedules);
  if (!found.clean()) return found;
  Numbers reached = runner.that_reach(result.mutant, runner.usual());
  const bool by_usual = !reached.empty();
  Numbers further = runner.that_reach(result.mutant, runner.further());
  reached.insert(reached.end(), further.begin(), further.end());
  if (reached.empty() && !(of_values && runner.unusual_reaches(result.mutant))) {
    result.verdict = Verdict::unreached;
    return found;
  }
  // With values, and of the further sizes without: that a change to the order of accesses leaves
  // them in order leaves the results too.
  Run usual = std::move(found);
  reached = runner.that_tell(result.mutant, std::move(reached));
  further = runner.that_tell(result.mutant, std::move(further));
  if (result.mutant.division != simulator::Mutant::Division::none && reached.empty()) {
    result.reason = "in no size is what it makes another number, and no rule says that none is";
    return found;
  }
  found = of_values ? runner.run(changed, further, by_usual ? 1 : options.schedules)
                    : runner.run_order(changed, further);
  if (found.clean() && of_values) found = runner.run_unusual(changed, telling);
  if (!found.clean()) return found;
  // One cluster takes all numbers from a word in their order. More of them share these out, as
  // they share out tiles: a few schedules draw how.
  std::string timing = usual.timing.empty() ? found.timing : usual.timing;
  if (timing.empty()) timing = usual.words;
  if (timing.empty() && !by_usual) timing = found.words;
  // In the others nothing hangs on it: the one run stands for all of their schedules.
  if (!runner.draws()) {
    const auto stands_for_all = [&](std::size_t i) {
      return usual.hanging.count(i) + found.hanging.count(i) == 0;
    };
    reached.erase(std::remove_if(reached.begin(), reached.end(), stands_for_all), reached.end());
  }
  if (!reached.empty()) {
    const std::int64_t schedules = timing.empty() ? options.drawn : options.more;
    found = runner.run_control(changed, reached, schedules, by_usual);
    if (!found.clean()) return found;
  }
  if (of_values) {
    result.reason = why_not_wrong(runner);
  } else if (timing.empty()) {
    find_equivalent(result,
                    "nothing hangs on the order of the work, and in no order is anything unordered "
                    "without it: other waits order the same");
  } else {
    result.reason = fmt::format("it hangs on the order of the work, as {}", timing);
  }
  return found;
}

void judge(const ir::Kernel& machine, const ProofOptions& options, Runner& runner,
           MutantResult& result) {
  const ir::Kernel changed = result.mutant.apply(machine);
  const std::string& rule = result.mutant.equivalent;
  Run found;
  try {
    target::verify(changed);
    found = rule.empty() ? look_for_fault(changed, options, runner, result)
                         : runner.run_equivalent(changed);
  } catch (const Error& error) {
    result.verdict = Verdict::rejected;
    result.fault = {"rejected", error.location(), {}, error.message(), {}};
    return;
  }
  if (found.clean()) {
    if (!rule.empty()) find_equivalent(result, rule);
    return;
  }
  result.verdict = Verdict::caught;
  result.fault = std::move(found.fault);
  result.workload = found.workload;
  result.seed = found.seed;
  result.right_class = is_of(*result.kind, result.fault);
  result.both_lines = result.fault.first.line > 0 && result.fault.second.line > 0;
}

// All mutants of the kernel, or those of a part of its places.
std::vector<MutantResult> mutants_to_judge(const ir::Kernel& machine, const ProofOptions& options) {
  std::vector<MutantResult> all;
  std::map<std::size_t, std::size_t> places;  // sites in order, and which of them it is
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      places[mutant.site] = 0;
      MutantResult& result = all.emplace_back();
      result.kind = &kind;
      result.mutant = std::move(mutant);
    }
  }
  std::size_t count = 0;
  for (auto& [site, number] : places) number = count++;
  const auto is_of_another = [&](const MutantResult& result) {
    return places.at(result.mutant.site) % options.parts != options.part;
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_of_another), all.end());
  return all;
}

void require_clean(const ir::Kernel& machine, Runner& runner) {
  const Run found = runner.run(machine, runner.usual(), 1);
  if (found.clean()) return;
  Diagnostic text = compiler::diagnostic_of(found.fault);
  text.fix(fmt::format("a kernel without faults of its own (seed {})", found.seed)).raise();
}

}  // namespace

std::int64_t most_operations(std::int64_t usual) {
  constexpr std::int64_t kTimes = 20, kMore = 500'000;
  return kTimes * usual + kMore;
}

MachineReport report_of(const std::function<MachineReport()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::result) throw;
    MachineReport report;
    report.faults.push_back(
        {"deadlock", error.location(), {}, "deadlock: without an end: " + error.message(), {}});
    return report;
  }
}

bool draws_conditions(const ir::Kernel& machine) {
  bool found = false;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    found = found || operation.op == ir::Op::any_register;
  });
  return found;
}

std::vector<MutantResult> prove_by_faults(const ir::Kernel& machine,
                                          const std::vector<library::Workload>& workloads,
                                          const ProofOptions& options,
                                          const std::function<void(std::int64_t)>& begin,
                                          const std::function<void()>& advance) {
  const unsigned threads = thread_count(options.threads);
  std::vector<Runner> runners(threads, Runner(machine, workloads, options));
  require_clean(machine, runners.front());
  std::vector<MutantResult> results = mutants_to_judge(machine, options);
  if (begin) begin(static_cast<std::int64_t>(results.size()));
  in_parallel(threads, results.size(), [&](std::size_t i, unsigned thread) {
    judge(machine, options, runners[thread], results[i]);
    if (advance) advance();
  });
  return results;
}

}  // namespace tilewright::checks
