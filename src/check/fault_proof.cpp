#include "check/fault_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "check/shrunken_sizes.h"
#include "compiler/simulation.h"
#include "library/accuracy.h"
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
};

bool is_of(const simulator::FaultKind& kind, const simulator::Fault& fault) {
  return std::find(kind.classes.begin(), kind.classes.end(), fault.kind) != kind.classes.end();
}

bool shows_in_values(const simulator::FaultKind& kind) {
  return std::find(kind.classes.begin(), kind.classes.end(), "mismatch") != kind.classes.end();
}

// Inputs that are not drawn as usual.
struct Unusual {
  library::Workload workload;
  library::Reference reference;
  std::string how;
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
  }

  const Numbers& usual() const { return usual_; }
  const Numbers& further() const { return further_; }

  Run run(const ir::Kernel& kernel, const Numbers& workloads, std::int64_t schedules) {
    for (const std::size_t i : workloads) {
      for (std::int64_t schedule = 0; schedule < schedules; ++schedule) {
        Run found = run(kernel, i, options_.seed + static_cast<std::uint64_t>(schedule));
        if (!found.fault.kind.empty()) return found;
      }
    }
    return {};
  }
  // Of what a rule calls equivalent: a schedule of each usual workload, with values of the first.
  Run run_equivalent(const ir::Kernel& kernel) {
    Run found = run(kernel, usual_.front(), options_.seed);
    simulator::MachineOptions machine = with_seed(options_.seed);
    machine.control_only = true;
    for (std::size_t i = 1; i < usual_.size() && found.fault.kind.empty(); ++i) {
      found = run_launches(kernel, usual_[i], machine);
    }
    return found;
  }
  // On inputs of which one lies far from zero: what does not exist, which reads as zeros, then is
  // by far the largest element, or the smallest, and outlives even what forgives a wrong shift. And
  // on inputs that grow along an axis: what a kernel does when a later block has larger elements.
  Run run_unusual(const ir::Kernel& kernel) {
    for (const std::size_t i : usual_) {
      for (Unusual& unusual : unusual_of(i)) {
        Run found = run_values(kernel, unusual.workload, unusual.reference, options_.seed);
        if (found.fault.kind.empty()) continue;
        found.workload = i;
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
        if (!launch(probe, unusual.workload, with_seed(options_.seed)).ok()) return true;
      }
    }
    return false;
  }
  // Whether the mask that the mutant leaves out puts the number there that is there already, such
  // as the zeros of what TMA finds past a tensor's end: no input tells the two apart by a bit, but
  // another number in those places shows.
  bool puts_what_is_there(const simulator::Mutant& mutant, const ir::Kernel& changed) {
    for (const double number : {HUGE_VAL, -HUGE_VAL}) {
      ir::Kernel filled = machine_;
      mutant.filled(filled, number);
      if (!run(filled, usual_, 1).fault.kind.empty()) return same_bits(changed);
    }
    return false;
  }
  // Whether it gives the kernel's results, bit for bit, on unusual inputs too.
  bool same_bits(const ir::Kernel& changed) {
    const auto same_on = [&](library::Workload& workload) {
      launch(machine_, workload, with_seed(options_.seed));
      const std::vector<HostTensor> wanted = workload.tensors;
      launch(changed, workload, with_seed(options_.seed));
      return workload.tensors == wanted;
    };
    for (const std::size_t i : usual_) {
      if (!same_on(workloads_[i])) return false;
      for (Unusual& unusual : unusual_of(i)) {
        if (!same_on(unusual.workload)) return false;
      }
    }
    return true;
  }
  // Many more schedules, without arithmetic.
  Run run_control(const ir::Kernel& kernel, const Numbers& workloads) {
    Run found;
    simulator::MachineOptions machine;
    in_many_schedules(kernel, workloads, machine, [&](MachineReport& report, std::size_t number) {
      if (report.ok()) return false;
      found = {std::move(report.faults.front()), number, machine.seed};
      return true;
    });
    return found;
  }
  // Whether the change is a fault once other barriers do not order the accesses too.
  bool shows_alone(const simulator::FaultKind& kind, const simulator::Mutant& mutant,
                   const Numbers& workloads) {
    if (!mutant.alone) return false;
    ir::Kernel changed = machine_;
    mutant.alone(changed);
    const auto is_access = [&](SourceLocation where) {
      return std::any_of(mutant.accesses.begin(), mutant.accesses.end(), [&](SourceLocation own) {
        return own.file == where.file && own.line == where.line;
      });
    };
    const auto shows = [&](const simulator::Fault& fault) {
      if (mutant.accesses.empty()) return is_of(kind, fault);
      return fault.kind == "race" && is_access(fault.first) && is_access(fault.second);
    };
    simulator::MachineOptions machine;
    machine.stop_at_first = false;
    return in_many_schedules(
        changed, workloads, machine, [&](const MachineReport& report, std::size_t) {
          return std::any_of(report.faults.begin(), report.faults.end(), shows);
        });
  }
  // Those of the workloads that come to it.
  Numbers that_reach(const simulator::Mutant& mutant, const Numbers& workloads) {
    const ir::Kernel probe = mutant.probe(machine_);
    Numbers reached;
    for (const std::size_t i : workloads) {
      if (!launch(probe, i, with_seed(options_.seed)).ok()) reached.push_back(i);
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
    Run found = run_launches(kernel, number, with_seed(seed));
    if (!found.fault.kind.empty()) return found;
    if (references_[number].values.empty()) references_[number] = reference_of(workloads_[number]);
    return compared(workloads_[number], references_[number], number, seed);
  }
  Run run_launches(const ir::Kernel& kernel, std::size_t number,
                   simulator::MachineOptions machine) {
    simulator::OwnedMemory owned;
    machine.owned = &owned;
    for (std::int64_t i = 0; i < options_.launches; ++i) {
      machine.launch = static_cast<std::uint64_t>(i);
      MachineReport report = launch(kernel, number, machine);
      if (!report.ok()) return {std::move(report.faults.front()), number, machine.seed};
    }
    return {};
  }
  // Without arithmetic, on one workload after the other under each seed, until `shows` says so. The
  // further ones are large: they have but a few schedules.
  bool in_many_schedules(const ir::Kernel& kernel, const Numbers& workloads,
                         simulator::MachineOptions& machine,
                         const std::function<bool(MachineReport&, std::size_t)>& shows) {
    machine.control_only = true;
    const bool usual_reaches = workloads.front() < usual_.size();
    std::int64_t operations = 0;
    for (std::int64_t schedule = 0; schedule < options_.more; ++schedule) {
      if (schedule >= options_.few && operations >= options_.operations) break;
      machine.seed = options_.seed + static_cast<std::uint64_t>(schedule);
      for (const std::size_t i : workloads) {
        if (i >= usual_.size() && schedule >= options_.few && usual_reaches) continue;
        MachineReport report = launch(kernel, i, machine);
        operations += report.operations;
        if (shows(report, i)) return true;
      }
    }
    return false;
  }
  static Run compared(const library::Workload& workload, const library::Reference& reference,
                      std::size_t number, std::uint64_t seed) {
    const library::Comparison comparison = compare(workload, reference);
    if (comparison.ok()) return {};
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
      if (run_values(machine_, unusual.workload, unusual.reference, options_.seed)
              .fault.kind.empty()) {
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
  Run run_values(const ir::Kernel& kernel, library::Workload& workload,
                 const library::Reference& reference, std::uint64_t seed) {
    MachineReport report = launch(kernel, workload, with_seed(seed));
    if (!report.ok()) return {std::move(report.faults.front()), 0, seed};
    return compared(workload, reference, 0, seed);
  }
  MachineReport launch(const ir::Kernel& kernel, std::size_t number,
                       const simulator::MachineOptions& machine) {
    library::Workload& workload = workloads_[number];
    if (!workload.kernel) workload = options_.further[number - usual_.size()]();
    return launch(kernel, workload, machine, number >= usual_.size());
  }
  MachineReport launch(const ir::Kernel& kernel, library::Workload& workload,
                       simulator::MachineOptions machine, bool further = false) {
    machine.multiprocessors = shrunken_multiprocessors(machine_, further);
    if (!machine.control_only) workload.poison_outputs();
    return simulator::run_machine(kernel, workload.arguments(), machine);
  }

  const ir::Kernel& machine_;
  std::vector<library::Workload> workloads_;  // without a kernel: not made yet
  const Numbers usual_, further_;
  std::vector<library::Reference> references_;                          // none yet: empty
  std::vector<std::optional<std::vector<Unusual>>> unusual_workloads_;  // none yet: empty
  const ProofOptions& options_;
};

void judge(const ir::Kernel& machine, const ProofOptions& options, Runner& runner,
           MutantResult& result) {
  const ir::Kernel changed = result.mutant.apply(machine);
  Run found;
  try {
    target::verify(changed);
    found = result.mutant.equivalent.empty()
                ? runner.run(changed, runner.usual(), options.schedules)
                : runner.run_equivalent(changed);
  } catch (const Error& error) {
    result.verdict = Verdict::rejected;
    result.fault = {"rejected", error.location(), {}, error.message(), {}};
    return;
  }
  if (found.fault.kind.empty() && !result.mutant.equivalent.empty()) {
    result.verdict = Verdict::equivalent;
    return;
  }
  if (found.fault.kind.empty()) {
    Numbers reached = runner.that_reach(result.mutant, runner.usual());
    const bool by_usual = !reached.empty();
    const Numbers further = runner.that_reach(result.mutant, runner.further());
    reached.insert(reached.end(), further.begin(), further.end());
    if (reached.empty() && !runner.unusual_reaches(result.mutant)) {
      result.verdict = Verdict::unreached;
      return;
    }
    found = runner.run(changed, further, by_usual ? 1 : options.schedules);
    if (found.fault.kind.empty() && shows_in_values(*result.kind)) {
      found = runner.run_unusual(changed);
    }
    if (found.fault.kind.empty() && result.mutant.filled &&
        runner.puts_what_is_there(result.mutant, changed)) {
      result.verdict = Verdict::equivalent;
      result.mutant.equivalent =
          "no input tells by a bit, far from zero or not: what the mask would put there is there "
          "already; an infinity in its place is found";
      return;
    }
    if (found.fault.kind.empty() && shows_in_values(*result.kind) && runner.same_bits(changed)) {
      result.verdict = Verdict::undecided;
      return;
    }
    // Which phase of a barrier an arrival counts for may hang on the order of the work.
    // What unusual inputs alone come to has no schedules without arithmetic.
    if (found.fault.kind.empty() && reached.empty()) return;
    if (found.fault.kind.empty()) found = runner.run_control(changed, reached);
    if (found.fault.kind.empty()) {
      if (!runner.shows_alone(*result.kind, result.mutant, reached)) return;
      result.verdict = Verdict::equivalent;
      result.mutant.equivalent =
          "in no schedule of many does it show, since other waits order the same accesses: without "
          "those it is found";
      return;
    }
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
  if (found.fault.kind.empty()) return;
  Diagnostic text = compiler::diagnostic_of(found.fault);
  text.fix(fmt::format("a kernel without faults of its own (seed {})", found.seed)).raise();
}

}  // namespace

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
