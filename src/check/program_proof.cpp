#include "check/program_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/simulation.h"
#include "library/program_simulation.h"
#include "simulator/faults/program_faults.h"
#include "support/diagnostic.h"
#include "support/parallel.h"
#include "target/verify.h"

namespace tilewright::checks {
namespace {

using Verdict = MutantResult::Verdict;
using simulator::FaultKind;

struct Found {
  simulator::Fault fault;  // no kind: none
  std::size_t number = 0;  // of the case
  std::uint64_t seed = 0;
  std::int64_t operations = 0;  // executed by warps
  std::string timing = {};      // what hangs on the order of the work; empty: nothing
  explicit operator bool() const { return !fault.kind.empty(); }
};

// A mutant of the program, or of one of its kernels.
struct Seeded {
  std::optional<simulator::ProgramMutant> program;
  std::size_t kernel = 0;  // else
};

// What a mutant makes of the program, whatever its sizes.
using Change = std::function<ir::Program(const ir::Program&)>;

class Prover {
 public:
  Prover(const std::vector<ProgramCase>& cases, const std::vector<ir::Kernel>& kernels,
         const ProofOptions& options)
      : cases_(cases),
        kernels_(kernels),
        options_(options),
        wanted_(cases.size()),
        operations_(cases.size()) {}

  // Raises where the program has a fault of its own.
  void require_clean() {
    for (std::size_t number = 0; number < cases_.size(); ++number) {
      const ProgramCase& each = cases_[number];
      simulator::MachineOptions machine = each.machine;
      for (std::int64_t i = 0; i < options_.schedules; ++i) {
        machine.seed = options_.seed + static_cast<std::uint64_t>(i);
        const simulator::MachineReport report = library::simulate_program(
            each.program, kernels_, each.before, &wanted_[number], machine, options_.launches);
        operations_[number] = std::max(operations_[number], report.operations);
        if (report.ok()) continue;
        Diagnostic text = compiler::diagnostic_of(report.faults.front());
        text.fix(fmt::format("a program without faults of its own (seed {})", machine.seed))
            .raise();
      }
    }
  }

  void judge(const Seeded& seeded, MutantResult& result) const {
    try {
      Found found = seeded.program ? run(change_of(seeded), kernels_) : run_kernel(seeded, result);
      if (found) return catch_mutant(result, std::move(found));
      if (result.verdict != Verdict::undecided) return;
      // Changes to waits, events and signals that leave everything in order leave the results too.
      const bool hangs = !found.timing.empty();
      result.verdict = hangs ? Verdict::undecided : Verdict::equivalent;
      result.reason =
          hangs ? fmt::format("it hangs on the order of the work, as {}", found.timing)
                : "nothing hangs on the order of the work, and in no order is anything "
                  "unordered without it: other waits order the same, or nothing has to be";
    } catch (const Error& error) {
      result.verdict = Verdict::rejected;
      result.fault = {"rejected", error.location(), {}, error.message(), {}};
    }
  }

 private:
  static Change change_of(const Seeded& seeded) {
    return [&seeded](const ir::Program& program) { return seeded.program->apply(program); };
  }
  static bool draws(const std::vector<ir::Kernel>& kernels) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const ir::Kernel& kernel) { return draws_conditions(kernel); });
  }
  static ir::Program unchanged(const ir::Program& program) { return program; }

  Found run_kernel(const Seeded& seeded, MutantResult& result) const {
    std::vector<ir::Kernel> changed = kernels_;
    changed[seeded.kernel] = result.mutant.apply(kernels_[seeded.kernel]);
    target::verify(changed[seeded.kernel]);
    Found found = run(unchanged, changed);
    if (found) return found;
    if (!result.mutant.equivalent.empty()) {
      result.verdict = Verdict::equivalent;
      result.reason = result.mutant.equivalent;
      return {};
    }
    changed[seeded.kernel] = result.mutant.probe(kernels_[seeded.kernel]);
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      // What `found` has is what hangs on the order.
      if (run_once(i, cases_[i].program, changed, options_.seed, false)) return found;
    }
    result.verdict = Verdict::unreached;
    return {};
  }

  // Of all cases one schedule without values, which most faults need none of, then some with them.
  // Where something hangs on the order, many follow without.
  Found run(const Change& change, const std::vector<ir::Kernel>& kernels) const {
    std::vector<ir::Program> programs;
    for (const ProgramCase& each : cases_) programs.push_back(change(each.program));
    for (std::size_t number = 0; number < programs.size(); ++number) {
      Found found = run_once(number, programs[number], kernels, options_.seed, false);
      if (found) return found;
    }
    // A wrong result says nothing of where it comes from: another schedule may.
    Found mismatch;
    std::string timing;
    std::vector<bool> hangs(programs.size());
    for (std::size_t number = 0; number < programs.size(); ++number) {
      for (std::int64_t i = 0; i < options_.schedules; ++i) {
        Found found = run_once(number, programs[number], kernels,
                               options_.seed + static_cast<std::uint64_t>(i), true);
        if (found && found.fault.kind != "mismatch") return found;
        if (!found.timing.empty()) timing = found.timing;
        hangs[number] = hangs[number] || !found.timing.empty() || draws(kernels);
        if (found && !mismatch) mismatch = std::move(found);
        // The one run stands for all.
        if (!hangs[number]) break;
      }
    }
    const std::int64_t schedules = timing.empty() ? options_.few : options_.more;
    for (std::size_t number = 0; number < programs.size(); ++number) {
      if (!hangs[number]) continue;
      std::int64_t operations = 0;
      for (std::int64_t i = 0; i < schedules; ++i) {
        if (i >= options_.few && operations >= options_.operations) break;
        Found found = run_once(number, programs[number], kernels,
                               options_.seed + static_cast<std::uint64_t>(i), false);
        if (found) return found;
        operations += found.operations;
      }
    }
    mismatch.timing = std::move(timing);
    return mismatch;
  }
  Found run_once(std::size_t number, const ir::Program& program,
                 const std::vector<ir::Kernel>& kernels, std::uint64_t seed, bool values) const {
    simulator::MachineOptions machine = cases_[number].machine;
    machine.seed = seed;
    machine.control_only = !values;
    machine.timing = true;
    library::ProgramTensors after;
    machine.max_operations = most_operations(operations_[number]);
    simulator::MachineReport report = report_of([&] {
      return library::simulate_program(program, kernels, cases_[number].before,
                                       values ? &after : nullptr, machine, options_.launches);
    });
    if (!report.ok()) return {std::move(report.faults.front()), number, seed, report.operations};
    Found clean{{}, number, seed, report.operations, std::move(report.timing)};
    if (clean.timing.empty()) clean.timing = std::move(report.words);
    if (!values) return clean;
    const library::Comparison comparison =
        library::compare_buffers(program, after, wanted_[number]);
    if (comparison.ok()) return clean;
    clean.fault = {"mismatch", {}, {}, "mismatch: " + comparison.text(), {}};
    return clean;
  }

  static void catch_mutant(MutantResult& result, Found found) {
    const auto& classes = result.kind->classes;
    result.verdict = Verdict::caught;
    result.fault = std::move(found.fault);
    result.workload = found.number;
    result.seed = found.seed;
    result.right_class =
        std::find(classes.begin(), classes.end(), result.fault.kind) != classes.end();
    result.both_lines = result.fault.first.line > 0 && result.fault.second.line > 0;
  }

  const std::vector<ProgramCase>& cases_;
  const std::vector<ir::Kernel>& kernels_;
  const ProofOptions& options_;
  std::vector<library::ProgramTensors> wanted_;  // of each case
  std::vector<std::int64_t> operations_;         // the same, of warps in a run without a change
};

void add_kernel_mutants(const ir::Kernel& kernel, std::size_t number, const FaultKind& kind,
                        std::vector<Seeded>& seeded, std::vector<MutantResult>& results) {
  for (simulator::Mutant& mutant : simulator::mutants_of(kind, kernel)) {
    MutantResult& result = results.emplace_back();
    result.kind = &kind;
    result.mutant = std::move(mutant);
    result.mutant.operation += " of " + kernel.name;
    result.subject = number;
    Seeded& made = seeded.emplace_back();
    made.kernel = number;
  }
}

void keep_part(const ProofOptions& options, std::vector<Seeded>& seeded,
               std::vector<MutantResult>& results) {
  std::size_t kept = 0;
  for (std::size_t i = options.part; i < results.size(); i += options.parts, ++kept) {
    std::swap(seeded[kept], seeded[i]);
    std::swap(results[kept], results[i]);
  }
  seeded.resize(kept);
  results.resize(kept);
}

}  // namespace

std::vector<const FaultKind*> proof_kinds(bool all_of_kernels) {
  std::vector<const FaultKind*> list;
  for (const FaultKind& kind : simulator::fault_kinds()) {
    if (all_of_kernels || kind.number == 23 || kind.number == 24) list.push_back(&kind);
  }
  for (const FaultKind& kind : simulator::program_fault_kinds()) list.push_back(&kind);
  return list;
}

bool has_waits(const ir::Program& program) {
  return std::any_of(program.operations.begin(), program.operations.end(), [](const auto& each) {
    return each.kind == ir::ProgramOperation::Kind::wait ||
           each.kind == ir::ProgramOperation::Kind::wait_event;
  });
}

ProgramCase program_case(const ir::Program& program, const simulator::MachineOptions& machine,
                         std::uint64_t seed) {
  return {program, machine, ir::initial_tensors(program, {}, seed + 1)};
}

std::vector<MutantResult> prove_program(const std::vector<ProgramCase>& cases,
                                        const std::vector<ir::Kernel>& kernels,
                                        const ProofOptions& options,
                                        const std::function<void(std::int64_t)>& begin,
                                        const std::function<void()>& advance, bool all_of_kernels) {
  Prover prover(cases, kernels, options);
  prover.require_clean();
  std::vector<Seeded> seeded;
  std::vector<MutantResult> results;
  for (const FaultKind* kind : proof_kinds(all_of_kernels)) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      add_kernel_mutants(kernels[i], i, *kind, seeded, results);
    }
  }
  for (simulator::ProgramMutant& mutant : simulator::program_mutants(cases.front().program)) {
    MutantResult& result = results.emplace_back();
    result.kind = mutant.kind;
    result.mutant.where = mutant.where;
    result.mutant.site = mutant.site;
    result.subject = kernels.size();
    result.mutant.operation = mutant.operation;
    result.mutant.change = mutant.change;
    seeded.emplace_back().program = std::move(mutant);
  }
  keep_part(options, seeded, results);
  if (begin) begin(static_cast<std::int64_t>(results.size()));
  in_parallel(thread_count(options.threads), results.size(), [&](std::size_t i, unsigned) {
    prover.judge(seeded[i], results[i]);
    if (advance) advance();
  });
  return results;
}

}  // namespace tilewright::checks
