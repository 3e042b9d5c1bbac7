#include "driver/fault_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "driver/parallel.h"
#include "driver/simulation.h"
#include "ir/verifier.h"
#include "support/diagnostic.h"

namespace tilewright::driver {
namespace {

using Verdict = MutantResult::Verdict;

struct Run {
  simulator::Fault fault;  // of the first schedule that shows one; no kind: all are clean
  std::size_t workload = 0;
  std::uint64_t seed = 0;
};

bool is_of(const simulator::FaultKind& kind, const simulator::Fault& fault) {
  return std::find(kind.classes.begin(), kind.classes.end(), fault.kind) != kind.classes.end();
}

// What one thread runs the mutants of a kernel on.
class Runner {
 public:
  Runner(const ir::Kernel& machine, const std::vector<Workload>& workloads,
         const ProofOptions& options)
      : machine_(machine),
        workloads_(workloads),
        usual_(options.usual == 0 ? workloads.size() : options.usual),
        references_(workloads.size()),
        options_(options) {}

  Run run(const ir::Kernel& kernel) {
    for (std::size_t i = 0; i < usual_; ++i) {
      Run found = run_on(kernel, i);
      if (!found.fault.kind.empty()) return found;
    }
    return {};
  }
  // Of the workloads behind the usual ones those that come to the mutant; nothing: none does.
  std::optional<Run> run_further(const simulator::Mutant& mutant, const ir::Kernel& kernel) {
    bool reached = false;
    for (std::size_t i = usual_; i < workloads_.size(); ++i) {
      if (!reaches(mutant, i)) continue;
      reached = true;
      Run found = run_on(kernel, i);
      if (!found.fault.kind.empty()) return found;
    }
    return reached ? std::optional<Run>(Run()) : std::nullopt;
  }
  Run run_on(const ir::Kernel& kernel, std::size_t workload) {
    for (std::int64_t schedule = 0; schedule < options_.schedules; ++schedule) {
      Run found = run(kernel, workload, options_.seed + static_cast<std::uint64_t>(schedule));
      if (!found.fault.kind.empty()) return found;
    }
    return {};
  }
  // Many more schedules, without arithmetic.
  Run run_control(const ir::Kernel& kernel) {
    for (std::int64_t schedule = 0; schedule < options_.more; ++schedule) {
      simulator::MachineOptions machine =
          with_seed(options_.seed + static_cast<std::uint64_t>(schedule));
      machine.control_only = true;
      for (std::size_t i = 0; i < workloads_.size(); ++i) {
        simulator::MachineReport report = launch(kernel, i, machine);
        if (!report.ok()) return {std::move(report.faults.front()), i, machine.seed};
      }
    }
    return {};
  }
  // Whether the change is a fault once other barriers do not order the accesses too.
  bool shows_alone(const simulator::FaultKind& kind, const simulator::Mutant& mutant) {
    if (!mutant.alone) return false;
    ir::Kernel changed = machine_;
    mutant.alone(changed);
    const auto is_access = [&](SourceLocation where) {
      return std::any_of(mutant.accesses.begin(), mutant.accesses.end(), [&](SourceLocation own) {
        return own.file == where.file && own.line == where.line;
      });
    };
    simulator::MachineOptions machine;
    machine.stop_at_first = false;
    machine.control_only = true;
    for (std::int64_t schedule = 0; schedule < options_.more; ++schedule) {
      machine.seed = options_.seed + static_cast<std::uint64_t>(schedule);
      for (std::size_t i = 0; i < workloads_.size(); ++i) {
        const simulator::MachineReport report = launch(changed, i, machine);
        const bool shows = std::any_of(
            report.faults.begin(), report.faults.end(), [&](const simulator::Fault& fault) {
              if (mutant.accesses.empty()) return is_of(kind, fault);
              return fault.kind == "race" && is_access(fault.first) && is_access(fault.second);
            });
        if (shows) return true;
      }
    }
    return false;
  }
  // Whether one of the usual workloads comes to it.
  bool reaches(const simulator::Mutant& mutant) {
    for (std::size_t i = 0; i < usual_; ++i) {
      if (reaches(mutant, i)) return true;
    }
    return false;
  }

 private:
  bool reaches(const simulator::Mutant& mutant, std::size_t number) {
    return !launch(mutant.probe(machine_), number, with_seed(options_.seed)).ok();
  }
  Run run(const ir::Kernel& kernel, std::size_t number, std::uint64_t seed) {
    for (std::int64_t i = 0; i < options_.launches; ++i) {
      simulator::MachineReport report = launch(kernel, number, with_seed(seed));
      if (!report.ok()) return {std::move(report.faults.front()), number, seed};
    }
    const Workload& workload = workloads_[number];
    if (references_[number].empty()) references_[number] = reference_of(workload);
    const Comparison comparison = compare(workload, references_[number]);
    if (comparison.max_relative_error <= workload.kernel->tolerance(workload.options)) return {};
    return {{"mismatch", {}, {}, "mismatch: " + comparison.worst, {}}, number, seed};
  }
  static simulator::MachineOptions with_seed(std::uint64_t seed) {
    simulator::MachineOptions machine;
    machine.seed = seed;
    return machine;
  }
  simulator::MachineReport launch(const ir::Kernel& kernel, std::size_t number,
                                  simulator::MachineOptions machine) {
    machine.multiprocessors = machine_.cluster;
    workloads_[number].poison_outputs();
    return simulator::run_machine(kernel, workloads_[number].arguments(), machine);
  }

  const ir::Kernel& machine_;
  std::vector<Workload> workloads_;
  const std::size_t usual_;
  std::vector<std::vector<std::vector<double>>> references_;  // none yet: empty
  const ProofOptions& options_;
};

void judge(const ir::Kernel& machine, Runner& runner, MutantResult& result) {
  const ir::Kernel changed = result.mutant.apply(machine);
  Run found;
  try {
    ir::verify(changed);
    found = runner.run(changed);
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
    if (!runner.reaches(result.mutant)) {
      std::optional<Run> further = runner.run_further(result.mutant, changed);
      if (!further) {
        result.verdict = Verdict::unreached;
        return;
      }
      found = std::move(*further);
    }
    // Which phase of a barrier an arrival counts for may hang on the order of the work.
    if (found.fault.kind.empty()) found = runner.run_control(changed);
    if (found.fault.kind.empty()) {
      if (!runner.shows_alone(*result.kind, result.mutant)) return;
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

void require_clean(const ir::Kernel& machine, Runner& runner) {
  const Run found = runner.run(machine);
  if (found.fault.kind.empty()) return;
  Diagnostic text = diagnostic_of(found.fault);
  text.fix(fmt::format("a kernel without faults of its own (seed {})", found.seed)).raise();
}

}  // namespace

std::vector<MutantResult> prove_by_faults(const ir::Kernel& machine,
                                          const std::vector<Workload>& workloads,
                                          const ProofOptions& options,
                                          const std::function<void(std::int64_t)>& begin,
                                          const std::function<void()>& advance) {
  const unsigned threads = thread_count(options.threads);
  std::vector<Runner> runners(threads, Runner(machine, workloads, options));
  require_clean(machine, runners.front());
  std::vector<MutantResult> results;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      MutantResult& result = results.emplace_back();
      result.kind = &kind;
      result.mutant = std::move(mutant);
    }
  }
  if (begin) begin(static_cast<std::int64_t>(results.size()));
  in_parallel(threads, results.size(), [&](std::size_t i, unsigned thread) {
    judge(machine, runners[thread], results[i]);
    if (advance) advance();
  });
  return results;
}

}  // namespace tilewright::driver
