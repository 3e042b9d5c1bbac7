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
      machine.timing = true;
      for (std::int64_t i = 0; i < options_.schedules; ++i) {
        machine.seed = options_.seed + static_cast<std::uint64_t>(i);
        const simulator::MachineReport report = library::simulate_program(
            each.program, kernels_, each.before, &wanted_[number], machine, options_.launches);
        operations_[number] = std::max(operations_[number], report.operations);
        if (report.ok()) {
          if (report.timing.empty() && report.words.empty() && !draws(kernels_)) break;
          continue;
        }
        Diagnostic text = compiler::diagnostic_of(report.faults.front());
        text.fix(fmt::format("a program without faults of its own (seed {})", machine.seed))
            .raise();
      }
    }
  }

  void judge(const Seeded& seeded, MutantResult& result) const {
    judge_one_way(seeded, result);
    if (result.verdict != Verdict::undecided || !result.mutant.other_edit) return;
    MutantResult other;
    other.kind = result.kind;
    other.subject = result.subject;
    other.mutant = result.mutant;
    other.mutant.edit = result.mutant.other_edit;
    other.mutant.change = result.mutant.other_change;
    judge_one_way(seeded, other);
    if (other.verdict == Verdict::caught) result = std::move(other);
  }

 private:
  void judge_one_way(const Seeded& seeded, MutantResult& result) const {
    try {
      Found found = seeded.program ? run(change_of(seeded), kernels_, Values::of_all)
                                   : run_kernel(seeded, result);
      if (found) return catch_mutant(result, std::move(found));
      if (result.verdict != Verdict::undecided) return;
      if (!seeded.program && shows_in_values(*result.kind)) {
        result.reason = "no result is wrong on these inputs, and no rule says that none can be";
        return;
      }
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
    const Values values = !result.mutant.equivalent.empty()                 ? Values::of_one
                          : shows_in_values(*result.kind) || draws(changed) ? Values::of_all
                                                                            : Values::of_few;
    Found found = run(unchanged, changed, values);
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

  // Of how many cases there are runs with values. What leaves all accesses in order leaves the
  // results, so that a change of order has few.
  enum class Values : std::uint8_t { of_one, of_few, of_all };

  // Of all cases one schedule without values, which most faults need none of, then some with them.
  // Where something hangs on the order, many follow without.
  Found run(const Change& change, const std::vector<ir::Kernel>& kernels, Values values) const {
    std::vector<ir::Program> programs;
    for (const ProgramCase& each : cases_) programs.push_back(change(each.program));
    std::string timing;
    std::vector<bool> hangs(programs.size(), draws(kernels));
    for (std::size_t number = 0; number < programs.size(); ++number) {
      Found found = run_once(number, programs[number], kernels, options_.seed, false);
      if (found) return found;
      if (found.timing.empty()) continue;
      timing = found.timing;
      hangs[number] = true;
    }
    // A wrong result says nothing of where it comes from: another schedule may.
    Found mismatch;
    constexpr std::size_t kFew = 3;
    const std::size_t most = values == Values::of_one ? 1 : kFew;
    for (std::size_t number = 0; number < programs.size(); ++number) {
      if (values != Values::of_all && number >= most) break;
      const std::int64_t schedules = number < kFew ? options_.schedules : 1;
      for (std::int64_t i = 0; i < schedules; ++i) {
        Found found = run_once(number, programs[number], kernels,
                               options_.seed + static_cast<std::uint64_t>(i), true);
        if (found && found.fault.kind != "mismatch") return found;
        if (!found.timing.empty()) timing = found.timing;
        hangs[number] = hangs[number] || !found.timing.empty();
        if (found && !mismatch) mismatch = std::move(found);
        // The one run stands for all.
        if (!hangs[number]) break;
      }
    }
    const std::int64_t schedules = timing.empty() ? options_.few : options_.more;
    std::int64_t operations = 0;  // of all cases together
    for (std::int64_t i = 0; i < schedules; ++i) {
      if (i >= options_.few && operations >= options_.operations) break;
      for (std::size_t number = 0; number < programs.size(); ++number) {
        if (!hangs[number]) continue;
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

struct Listed {
  std::vector<Seeded> seeded;
  std::vector<MutantResult> results;
};

Listed listed(const ir::Program& program, const std::vector<ir::Kernel>& kernels,
              bool all_of_kernels) {
  Listed all;
  for (const FaultKind* kind : proof_kinds(all_of_kernels)) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      for (simulator::Mutant& mutant : simulator::mutants_of(*kind, kernels[i])) {
        MutantResult& result = all.results.emplace_back();
        result.kind = kind;
        result.mutant = std::move(mutant);
        result.mutant.operation += " of " + kernels[i].name;
        result.subject = i;
        all.seeded.emplace_back().kernel = i;
      }
    }
  }
  for (simulator::ProgramMutant& mutant : simulator::program_mutants(program)) {
    MutantResult& result = all.results.emplace_back();
    result.kind = mutant.kind;
    result.mutant.where = mutant.where;
    result.mutant.site = mutant.site;
    result.subject = kernels.size();
    result.mutant.operation = mutant.operation;
    result.mutant.change = mutant.change;
    all.seeded.emplace_back().program = std::move(mutant);
  }
  return all;
}

void keep_part(const ProofOptions& options, Listed& all) {
  std::size_t kept = 0;
  for (std::size_t i = options.part; i < all.results.size(); i += options.parts) {
    if (options.mutants && options.mutants->count(i) == 0) continue;
    std::swap(all.seeded[kept], all.seeded[i]);
    std::swap(all.results[kept], all.results[i]);
    ++kept;
  }
  all.seeded.resize(kept);
  all.results.resize(kept);
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

std::vector<MutantResult> list_mutants(const ir::Program& program,
                                       const std::vector<ir::Kernel>& kernels,
                                       bool all_of_kernels) {
  return listed(program, kernels, all_of_kernels).results;
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
  Listed all = listed(cases.front().program, kernels, all_of_kernels);
  keep_part(options, all);
  if (begin) begin(static_cast<std::int64_t>(all.results.size()));
  in_parallel(thread_count(options.threads), all.results.size(), [&](std::size_t i, unsigned) {
    prover.judge(all.seeded[i], all.results[i]);
    if (advance) advance();
  });
  return std::move(all.results);
}

}  // namespace tilewright::checks
