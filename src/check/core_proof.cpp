#include "check/core_proof.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "check/program_mutants.h"
#include "compiler/simulation.h"
#include "simulator/faults/core_faults.h"
#include "support/diagnostic.h"
#include "support/parallel.h"
#include "target/verify.h"

namespace tilewright::checks {
namespace {

using simulator::MachineOptions;
using Verdict = MutantResult::Verdict;

class CoreProver {
 public:
  CoreProver(const std::vector<ir::Kernel>& kernels, const std::vector<CoreCase>& cases,
             const ProofOptions& options)
      : kernels_(kernels), cases_(cases), options_(options) {
    for (const CoreCase& each : cases) {
      const CoreRun own = each(kernels, with_seed(0, INT64_MAX), nullptr);
      if (!own.report.ok()) {
        compiler::diagnostic_of(own.report.faults.front())
            .fix("kernels without faults of their own")
            .raise();
      }
      if (!own.mismatch.empty()) {
        Diagnostic(kernels.front().where, "mismatch: " + own.mismatch, ErrorKind::result)
            .fix("kernels whose results are right")
            .raise();
      }
      own_.push_back({own.bits, own.report.operations});
    }
  }

  void judge(const Seeded& seeded, MutantResult& result) const {
    std::vector<ir::Kernel> changed = kernels_;
    try {
      if (!seeded.program) {
        changed[seeded.kernel] = result.mutant.apply(kernels_[seeded.kernel]);
        target::verify(changed[seeded.kernel], ErrorKind::usage);
      }
    } catch (const Error& error) {
      result.verdict = Verdict::rejected;
      result.fault = {"rejected", error.location(), {}, error.message(), {}};
      return;
    }
    const simulator::ProgramMutant* of_program = seeded.program ? &*seeded.program : nullptr;
    // What changes an order alone leaves the results where it leaves the order.
    const bool is_order =
        of_program != nullptr ? is_of_order(*of_program) : !shows_in_values(*result.kind);
    bool same_bits = true;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      for (std::int64_t schedule = 0; schedule < options_.schedules; ++schedule) {
        const CoreRun run = this->run(changed, i, schedule, of_program);
        same_bits = same_bits && run.bits == own_[i].bits;
        if (run.report.ok() && run.mismatch.empty()) continue;
        result.verdict = Verdict::caught;
        result.fault = run.report.ok()
                           ? simulator::Fault{"mismatch", {}, {}, "mismatch: " + run.mismatch, {}}
                           : run.report.faults.front();
        result.workload = i;
        result.seed = options_.seed + static_cast<std::uint64_t>(schedule);
        const auto& classes = result.kind->classes;
        result.right_class =
            std::find(classes.begin(), classes.end(), result.fault.kind) != classes.end();
        result.both_lines = result.fault.first.line > 0 && result.fault.second.line > 0;
        return;
      }
    }
    if (of_program == nullptr && !is_reached(result)) {
      result.verdict = Verdict::unreached;
    } else if (!result.mutant.equivalent.empty()) {
      result.verdict = Verdict::equivalent;
      result.reason = result.mutant.equivalent;
    } else if (same_bits && is_order) {
      result.verdict = Verdict::equivalent;
      result.reason =
          "other events order the same: nothing is unordered without it, and no result differs";
    } else if (same_bits && of_program == nullptr && is_for_nothing(result)) {
      result.verdict = Verdict::equivalent;
      result.reason = "nothing that reaches a result is made of what it makes";
    } else {
      result.reason = same_bits ? "no result differs by a bit on these inputs"
                                : "results differ by less than rounding explains";
    }
  }

 private:
  struct Own {
    std::size_t bits = 0;
    std::int64_t operations = 0;
  };
  MachineOptions with_seed(std::int64_t schedule, std::int64_t most) const {
    MachineOptions options;
    options.seed = options_.seed + static_cast<std::uint64_t>(schedule);
    options.max_operations = most;
    return options;
  }
  CoreRun run(const std::vector<ir::Kernel>& kernels, std::size_t number, std::int64_t schedule,
              const simulator::ProgramMutant* change = nullptr) const {
    const MachineOptions options = with_seed(schedule, most_operations(own_[number].operations));
    CoreRun run;
    try {
      run.report = report_of([&] {
        run = cases_[number](kernels, options, change);
        return run.report;
      });
    } catch (const Error& error) {
      if (change == nullptr || !change->is_of_recorded()) throw;
      run.report.faults = {refusal_of(error)};
    }
    return run;
  }
  // An instruction that is left out.
  bool is_for_nothing(const MutantResult& result) const {
    if (!simulator::is_left_out(*result.kind)) return false;
    std::vector<ir::Kernel> changed = kernels_;
    changed[result.subject] =
        simulator::without_result(kernels_[result.subject], result.mutant.site);
    if (changed[result.subject].body.body.empty()) return false;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const CoreRun made = run(changed, i, 0);
      if (!made.report.ok() || made.bits != own_[i].bits) return false;
    }
    return true;
  }
  bool is_reached(const MutantResult& result) const {
    const ir::Kernel probe = simulator::core_probe(kernels_[result.subject], result.mutant.site);
    if (probe.body.body.empty()) return true;
    std::vector<ir::Kernel> probed = kernels_;
    probed[result.subject] = probe;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (!run(probed, i, 0).report.ok()) return true;
    }
    return false;
  }

  const std::vector<ir::Kernel>& kernels_;
  const std::vector<CoreCase>& cases_;
  const ProofOptions& options_;
  std::vector<Own> own_;
};

}  // namespace

namespace {

ProgramMutants core_mutants(const std::vector<ir::Kernel>& kernels,
                            const ProgramChanges& of_program) {
  ProgramMutants all;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    for (const simulator::FaultKind& kind : simulator::core_fault_kinds()) {
      for (simulator::Mutant& mutant : simulator::mutants_of(kind, kernels[i])) {
        MutantResult& result = all.results.emplace_back();
        result.kind = &kind;
        result.mutant = std::move(mutant);
        if (kernels.size() > 1) result.mutant.operation += " of " + kernels[i].name;
        result.subject = i;
        all.seeded.emplace_back().kernel = i;
      }
    }
  }
  add(of_program, kernels.size(), all);
  return all;
}

}  // namespace

std::vector<const simulator::FaultKind*> core_kinds(bool of_programs) {
  std::vector<const simulator::FaultKind*> kinds;
  if (of_programs) {
    for (const simulator::FaultKind& kind : simulator::program_fault_kinds()) {
      kinds.push_back(&kind);
    }
  }
  for (const simulator::FaultKind& kind : simulator::core_fault_kinds()) kinds.push_back(&kind);
  std::sort(kinds.begin(), kinds.end(),
            [](const auto* a, const auto* b) { return a->number < b->number; });
  return kinds;
}

std::vector<MutantResult> list_core_mutants(const std::vector<ir::Kernel>& kernels,
                                            const ProgramChanges& of_program) {
  return core_mutants(kernels, of_program).results;
}

std::vector<MutantResult> prove_cores(const std::vector<ir::Kernel>& kernels,
                                      const std::vector<CoreCase>& cases,
                                      const ProofOptions& options, const ProgramChanges& of_program,
                                      const std::function<void(std::int64_t)>& begin,
                                      const std::function<void()>& advance) {
  ProgramMutants wanted = core_mutants(kernels, of_program);
  keep_part(options, wanted);
  const CoreProver prover(kernels, cases, options);
  if (begin) begin(static_cast<std::int64_t>(wanted.results.size()));
  in_parallel(thread_count(options.threads), wanted.results.size(), [&](std::size_t i, unsigned) {
    prover.judge(wanted.seeded[i], wanted.results[i]);
    if (advance) advance();
  });
  return std::move(wanted.results);
}

std::size_t bits_of(const std::vector<HostTensor>& tensors) {
  std::size_t bits = 0;
  for (const HostTensor& tensor : tensors) {
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes());
    bits = bits * 1000003 + std::hash<std::string_view>()(bytes);
  }
  return bits;
}

}  // namespace tilewright::checks
