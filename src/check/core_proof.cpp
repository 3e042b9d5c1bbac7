#include "check/core_proof.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

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
      const CoreRun own = each(kernels, with_seed(0, INT64_MAX));
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

  void judge(MutantResult& result) const {
    std::vector<ir::Kernel> changed = kernels_;
    try {
      changed[result.subject] = result.mutant.apply(kernels_[result.subject]);
      target::verify(changed[result.subject], ErrorKind::usage);
    } catch (const Error& error) {
      result.verdict = Verdict::rejected;
      result.fault = {"rejected", error.location(), {}, error.message(), {}};
      return;
    }
    bool same_bits = true;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      for (std::int64_t schedule = 0; schedule < options_.schedules; ++schedule) {
        const CoreRun run = this->run(changed, i, schedule);
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
    if (!is_reached(result)) {
      result.verdict = Verdict::unreached;
    } else if (!result.mutant.equivalent.empty()) {
      result.verdict = Verdict::equivalent;
      result.reason = result.mutant.equivalent;
    } else if (same_bits && !shows_in_values(*result.kind)) {
      result.verdict = Verdict::equivalent;
      result.reason =
          "other events order the same: nothing is unordered without it, and no result differs";
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
  CoreRun run(const std::vector<ir::Kernel>& kernels, std::size_t number,
              std::int64_t schedule) const {
    const MachineOptions options = with_seed(schedule, most_operations(own_[number].operations));
    CoreRun run;
    run.report = report_of([&] {
      run = cases_[number](kernels, options);
      return run.report;
    });
    return run;
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

std::vector<const simulator::FaultKind*> core_kinds() {
  std::vector<const simulator::FaultKind*> kinds;
  for (const simulator::FaultKind& kind : simulator::core_fault_kinds()) kinds.push_back(&kind);
  return kinds;
}

std::vector<MutantResult> list_core_mutants(const std::vector<ir::Kernel>& kernels) {
  std::vector<MutantResult> all;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    for (const simulator::FaultKind& kind : simulator::core_fault_kinds()) {
      for (simulator::Mutant& mutant : simulator::mutants_of(kind, kernels[i])) {
        MutantResult& result = all.emplace_back();
        result.kind = &kind;
        result.mutant = std::move(mutant);
        if (kernels.size() > 1) result.mutant.operation += " of " + kernels[i].name;
        result.subject = i;
      }
    }
  }
  return all;
}

std::vector<MutantResult> prove_cores(const std::vector<ir::Kernel>& kernels,
                                      const std::vector<CoreCase>& cases,
                                      const ProofOptions& options,
                                      const std::function<void(std::int64_t)>& begin,
                                      const std::function<void()>& advance) {
  std::vector<MutantResult> wanted, all = list_core_mutants(kernels);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % options.parts != options.part) continue;
    if (!options.mutants || options.mutants->count(i) != 0) wanted.push_back(std::move(all[i]));
  }
  const CoreProver prover(kernels, cases, options);
  if (begin) begin(static_cast<std::int64_t>(wanted.size()));
  in_parallel(options.threads, wanted.size(), [&](std::size_t i, unsigned) {
    prover.judge(wanted[i]);
    if (advance) advance();
  });
  return wanted;
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
