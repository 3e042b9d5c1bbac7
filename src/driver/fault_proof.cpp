#include "driver/fault_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

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
      : machine_(machine), workloads_(workloads), options_(options) {
    for (const Workload& workload : workloads) references_.push_back(reference_of(workload));
  }

  Run run(const ir::Kernel& kernel) {
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
      for (std::int64_t schedule = 0; schedule < options_.schedules; ++schedule) {
        Run found = run(kernel, i, options_.seed + static_cast<std::uint64_t>(schedule));
        if (!found.fault.kind.empty()) return found;
      }
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
  bool reaches(const simulator::Mutant& mutant) {
    const ir::Kernel probed = mutant.probe(machine_);
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
      if (!launch(probed, i, with_seed(options_.seed)).ok()) return true;
    }
    return false;
  }

 private:
  Run run(const ir::Kernel& kernel, std::size_t number, std::uint64_t seed) {
    for (std::int64_t i = 0; i < options_.launches; ++i) {
      simulator::MachineReport report = launch(kernel, number, with_seed(seed));
      if (!report.ok()) return {std::move(report.faults.front()), number, seed};
    }
    const Workload& workload = workloads_[number];
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
  std::vector<std::vector<std::vector<double>>> references_;
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
      result.verdict = Verdict::unreached;
      return;
    }
    // Which phase of a barrier an arrival counts for may hang on the order of the work.
    found = runner.run_control(changed);
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

// Calls `work(i)` for all i below the count, each once, from several threads.
void in_parallel(unsigned threads, std::size_t count,
                 const std::function<void(std::size_t, unsigned)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto worker = [&](unsigned number) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i, number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(worker, i);
  worker(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<MutantResult> prove_by_faults(const ir::Kernel& machine,
                                          const std::vector<Workload>& workloads,
                                          const ProofOptions& options,
                                          const std::function<void(std::int64_t)>& begin,
                                          const std::function<void()>& advance) {
  unsigned threads = options.threads ? options.threads : std::thread::hardware_concurrency();
  threads = std::max(threads, 1u);
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
