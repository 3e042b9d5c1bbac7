#include "check/core_proof.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
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

// Of a changed kernel that may never come to its end. An instruction of a core is as much work as
// thousands of a warp's.
std::int64_t most_instructions(std::int64_t usual) {
  constexpr std::int64_t kTimes = 20, kMore = 20'000;
  return kTimes * usual + kMore;
}

class CoreProver {
 public:
  CoreProver(const std::vector<ir::Kernel>& kernels, const std::vector<CoreCase>& cases,
             const std::vector<UnusualCoreCase>& unusual, const ProofOptions& options)
      : kernels_(kernels),
        cases_(cases),
        unusual_(unusual),
        options_(options),
        own_(cases.size()),
        own_unusual_(unusual.size()) {}

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
    // The last is the cheapest.
    for (std::size_t i = cases_.size(); i-- > 0;) {
      const Own& own = own_on_case(i);
      for (std::int64_t schedule = 0; schedule < options_.schedules; ++schedule) {
        const CoreRun run = this->run(changed, cases_[i], own, schedule, of_program);
        same_bits = same_bits && run.bits == own.bits;
        if (is_clean(run)) continue;
        result.workload = i;
        result.seed = options_.seed + static_cast<std::uint64_t>(schedule);
        return caught(run, "", result);
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
    } else if (same_bits && of_program == nullptr && leaves_nothing(result)) {
      result.verdict = Verdict::equivalent;
      result.reason = "nothing that reaches a result is made of what it leaves";
    } else {
      on_unusual_inputs(changed, of_program, same_bits, result);
    }
  }

 private:
  struct Own {
    std::size_t bits = 0;
    std::int64_t operations = 0;
  };
  struct OwnOnCase {
    std::once_flag made;
    Own own;
  };
  struct Unusual {
    std::once_flag made;
    std::optional<Own> own;  // nothing: the kernels are not right there
  };
  static bool is_clean(const CoreRun& run) { return run.report.ok() && run.mismatch.empty(); }
  static void caught(const CoreRun& run, const std::string& how, MutantResult& result) {
    result.verdict = Verdict::caught;
    result.fault = run.report.ok()
                       ? simulator::Fault{"mismatch", {}, {}, "mismatch: " + run.mismatch, {}}
                       : run.report.faults.front();
    if (!how.empty()) result.fault.message += " (where " + how + ")";
    const auto& classes = result.kind->classes;
    result.right_class =
        std::find(classes.begin(), classes.end(), result.fault.kind) != classes.end();
    result.both_lines = result.fault.first.line > 0 && result.fault.second.line > 0;
  }
  void on_unusual_inputs(const std::vector<ir::Kernel>& changed,
                         const simulator::ProgramMutant* of_program, bool same_bits,
                         MutantResult& result) const {
    bool any = false;
    for (std::size_t i = 0; i < unusual_.size(); ++i) {
      const std::optional<Own>& own = own_on(i);
      if (!own) continue;
      any = true;
      const CoreRun run = this->run(changed, unusual_[i].run, *own, 0, of_program);
      same_bits = same_bits && run.bits == own->bits;
      if (!is_clean(run)) return caught(run, unusual_[i].how, result);
    }
    if (any && same_bits && of_program == nullptr && simulator::takes_more(result.mutant)) {
      result.verdict = Verdict::equivalent;
      result.reason =
          "what it takes more is multiplied by zero, not chosen or not read: results are the same "
          "bit for bit, also of inputs far from zero";
      return;
    }
    if (any && same_bits && of_program == nullptr &&
        simulator::hides_by_zero(kernels_[result.subject], *result.kind, result.mutant.site)) {
      result.verdict = Verdict::equivalent;
      result.reason =
          "what it hides is zero already: results are the same bit for bit, also of inputs far "
          "from zero";
      return;
    }
    if (any && same_bits && of_program == nullptr && is_never_chosen(result)) {
      result.verdict = Verdict::equivalent;
      result.reason = "what it would choose is never chosen, also of inputs far from zero";
      return;
    }
    if (of_program == nullptr && shows_in_nothing(result)) return;
    result.reason = same_bits ? "no result differs by a bit on these inputs"
                              : "results differ by less than rounding explains";
  }
  // Where what lies there already hides that an instruction is left out: with what nobody has
  // written in its place.
  bool shows_in_nothing(MutantResult& result) const {
    const ir::Kernel kernel =
        simulator::without_result(kernels_[result.subject], *result.kind, result.mutant.site);
    if (result.kind->number != simulator::kInstructionKind || kernel.body.body.empty())
      return false;
    std::vector<ir::Kernel> changed = kernels_;
    changed[result.subject] = kernel;
    for (std::size_t i = cases_.size(); i-- > 0;) {
      const CoreRun run = this->run(changed, cases_[i], own_on_case(i), 0);
      if (run.report.ok()) continue;
      result.workload = i;
      result.seed = options_.seed;
      caught(run, "", result);
      result.shown_by = "with what nobody has written in its place";
      return true;
    }
    return false;
  }
  // What a case makes of the kernels without a change, once somebody asks: most mutants show in the
  // cheapest.
  const Own& own_on_case(std::size_t number) const {
    OwnOnCase& of_case = own_[number];
    std::call_once(of_case.made, [&] {
      const CoreRun own = cases_[number](kernels_, with_seed(0, INT64_MAX), nullptr);
      if (!own.report.ok()) {
        compiler::diagnostic_of(own.report.faults.front())
            .fix("kernels without faults of their own")
            .raise();
      }
      if (!own.mismatch.empty()) {
        Diagnostic(kernels_.front().where, "mismatch: " + own.mismatch, ErrorKind::result)
            .fix("kernels whose results are right")
            .raise();
      }
      of_case.own = {own.bits, own.report.operations};
    });
    return of_case.own;
  }
  const std::optional<Own>& own_on(std::size_t number) const {
    Unusual& unusual = own_unusual_[number];
    std::call_once(unusual.made, [&] {
      const CoreRun own = unusual_[number].run(kernels_, with_seed(0, INT64_MAX), nullptr);
      if (is_clean(own)) unusual.own = {own.bits, own.report.operations};
    });
    return unusual.own;
  }
  MachineOptions with_seed(std::int64_t schedule, std::int64_t most) const {
    MachineOptions options;
    options.seed = options_.seed + static_cast<std::uint64_t>(schedule);
    options.max_operations = most;
    return options;
  }
  CoreRun run(const std::vector<ir::Kernel>& kernels, const CoreCase& of, const Own& own,
              std::int64_t schedule, const simulator::ProgramMutant* change = nullptr) const {
    const MachineOptions options = with_seed(schedule, most_instructions(own.operations));
    CoreRun run;
    try {
      const auto executed = [&] {
        run = of(kernels, options, change);
        return run.report;
      };
      const bool is_of_recorded = change != nullptr && change->is_of_recorded();
      run.report = report_of(executed, /*finds_refusals=*/!is_of_recorded);
    } catch (const Error& error) {
      if (change == nullptr || !change->is_of_recorded()) throw;
      run.report.faults = {refusal_of(error)};
    }
    return run;
  }
  // Whether the kernel is without faults, and has the same results bit for bit, on all cases.
  bool is_the_same(const ir::Kernel& kernel, std::size_t subject) const {
    if (kernel.body.body.empty()) return false;
    std::vector<ir::Kernel> changed = kernels_;
    changed[subject] = kernel;
    for (std::size_t i = cases_.size(); i-- > 0;) {
      const Own& own = own_on_case(i);
      const CoreRun made = run(changed, cases_[i], own, 0);
      if (!made.report.ok() || made.bits != own.bits) return false;
    }
    return true;
  }
  bool is_the_same_on_unusual(const ir::Kernel& kernel, std::size_t subject) const {
    std::vector<ir::Kernel> changed = kernels_;
    changed[subject] = kernel;
    for (std::size_t i = 0; i < unusual_.size(); ++i) {
      const std::optional<Own>& own = own_on(i);
      if (!own) continue;
      const CoreRun made = run(changed, unusual_[i].run, *own, 0);
      if (!made.report.ok() || made.bits != own->bits) return false;
    }
    return true;
  }
  bool is_for_nothing(const MutantResult& result) const {
    return is_the_same(
        simulator::without_result(kernels_[result.subject], *result.kind, result.mutant.site),
        result.subject);
  }
  bool leaves_nothing(const MutantResult& result) const {
    const ir::Kernel changed =
        simulator::with_other_rest(kernels_[result.subject], *result.kind, result.mutant);
    return is_the_same(changed, result.subject) && is_the_same_on_unusual(changed, result.subject);
  }
  bool is_never_chosen(const MutantResult& result) const {
    const ir::Kernel changed =
        simulator::without_choice(kernels_[result.subject], *result.kind, result.mutant.site);
    return is_the_same(changed, result.subject) && is_the_same_on_unusual(changed, result.subject);
  }
  bool is_reached(const MutantResult& result) const {
    const ir::Kernel probe = simulator::core_probe(kernels_[result.subject], result.mutant.site);
    if (probe.body.body.empty()) return true;
    std::vector<ir::Kernel> probed = kernels_;
    probed[result.subject] = probe;
    for (std::size_t i = cases_.size(); i-- > 0;) {
      if (!run(probed, cases_[i], own_on_case(i), 0).report.ok()) return true;
    }
    return false;
  }

  const std::vector<ir::Kernel>& kernels_;
  const std::vector<CoreCase>& cases_;
  const std::vector<UnusualCoreCase>& unusual_;
  const ProofOptions& options_;
  mutable std::vector<OwnOnCase> own_;
  mutable std::vector<Unusual> own_unusual_;
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
                                      const std::vector<UnusualCoreCase>& unusual,
                                      const ProofOptions& options, const ProgramChanges& of_program,
                                      const std::function<void(std::int64_t)>& begin,
                                      const Advance& advance) {
  ProgramMutants wanted = core_mutants(kernels, of_program);
  keep_part(options, wanted);
  const CoreProver prover(kernels, cases, unusual, options);
  if (begin) begin(static_cast<std::int64_t>(wanted.results.size()));
  in_parallel(thread_count(options.threads), wanted.results.size(), [&](std::size_t i, unsigned) {
    prover.judge(wanted.seeded[i], wanted.results[i]);
    if (advance) advance(wanted.results[i]);
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
