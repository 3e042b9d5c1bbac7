#include "check/fault_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "check/mutant_runner.h"
#include "ir/text.h"
#include "simulator/faults/sites.h"
#include "support/parallel.h"
#include "target/verify.h"

namespace tilewright::checks {
namespace {

using Verdict = MutantResult::Verdict;
using simulator::MachineReport;

bool is_of(const simulator::FaultKind& kind, const simulator::Fault& fault) {
  return std::find(kind.classes.begin(), kind.classes.end(), fault.kind) != kind.classes.end();
}

void find_equivalent(MutantResult& result, std::string reason) {
  result.verdict = Verdict::equivalent;
  result.reason = std::move(reason);
}

std::string why_not_wrong(MutantRunner& runner) {
  return runner.same_bits()
             ? "no result differs by a bit on these inputs, and no rule says that none can"
             : "results differ by less than rounding explains";
}

// The same of one that changes nothing else: the values of one schedule are those of all.
MutantRun look_for_wrong_values(const ir::Kernel& changed, MutantRunner& runner,
                                MutantResult& result) {
  MutantRun found = runner.run_launch(changed, runner.usual());
  if (!found.clean()) return found;
  const WorkloadNumbers further = runner.that_reach(result.mutant, runner.further());
  if (further.empty() && runner.that_reach(result.mutant, runner.usual()).empty() &&
      !runner.unusual_reaches(result.mutant)) {
    result.verdict = Verdict::unreached;
    return found;
  }
  found = runner.run_launch(changed, further);
  // What forgives a wrong element may do so bit for bit, unless that is the largest by far.
  if (found.clean()) {
    constexpr std::size_t kFew = 3;
    WorkloadNumbers unusual = runner.cheapest_first(runner.usual());
    if (unusual.size() > kFew && runner.same_bits()) unusual.resize(kFew);
    found = runner.run_unusual(changed, unusual, /*check_order=*/false);
  }
  if (found.clean()) result.reason = why_not_wrong(runner);
  return found;
}

// What a mutant shows of which no rule says that it shows nothing. Else the verdict is set.
MutantRun look_for_fault(const ir::Kernel& changed, const ProofOptions& options,
                         MutantRunner& runner, MutantResult& result) {
  runner.begin_mutant();
  if (runner.changes_values_alone(result.mutant)) {
    return look_for_wrong_values(changed, runner, result);
  }
  const bool of_values = shows_in_values(*result.kind);
  const WorkloadNumbers telling = runner.that_tell(result.mutant, runner.usual());
  MutantRun usual = runner.run_order(changed, of_values ? telling : runner.usual());
  if (!usual.clean()) return usual;
  // Of the further sizes an order mutant has no values: where the accesses stay in order, so do the
  // results.
  MutantRun more = runner.run_order(
      changed, runner.that_tell(result.mutant, runner.that_may_reach(result.mutant)));
  if (!more.clean()) return more;
  // Values are those of any order, but where conditions depend on them.
  const bool in_order = of_values && !runner.draws();
  WorkloadNumbers reached = runner.that_reach(result.mutant, runner.usual());
  const bool by_usual = !reached.empty();
  if (!in_order) {
    // What leaves all accesses in order leaves the results, unless conditions depend on these.
    WorkloadNumbers valued = telling;
    if (!of_values && !runner.draws() && by_usual)
      valued = {runner.cheapest_first(reached).front()};
    MutantRun found = runner.run(changed, valued, options.schedules);
    if (!found.clean()) return found;
    usual.add_timing(found);
  }
  WorkloadNumbers further = runner.that_reach(result.mutant, runner.further());
  reached.insert(reached.end(), further.begin(), further.end());
  if (reached.empty() && !(of_values && runner.unusual_reaches(result.mutant))) {
    result.verdict = Verdict::unreached;
    return {};
  }
  reached = runner.that_tell(result.mutant, std::move(reached));
  further = runner.that_tell(result.mutant, std::move(further));
  if (is_division(result.mutant) && reached.empty()) {
    MutantRun found = runner.run_candidates(changed, result.mutant);
    if (found.clean()) {
      result.reason = "in no size is what it makes another number, and no rule says that none is";
    }
    return found;
  }
  MutantRun found;
  if (in_order) {
    found = runner.run_launch(changed, reached);
  } else if (of_values) {
    found = runner.run(changed, further, by_usual ? 1 : options.schedules);
  }
  // Where no bit differs, other elements make no difference but by what rounds away.
  if (found.clean() && of_values && !runner.same_bits()) {
    found = runner.run_unusual(changed, telling, !in_order);
  }
  if (!found.clean()) return found;
  // One cluster takes all numbers from a word in their order. More of them share these out, as
  // they share out tiles: a few schedules draw how.
  std::string timing = usual.timing.empty() ? more.timing : usual.timing;
  if (timing.empty()) timing = usual.words;
  if (timing.empty() && !by_usual) timing = more.words;
  if (timing.empty()) {
    usual.arrivals.join(more.arrivals);
    timing = usual.arrivals.never_awaited();
  }
  // In the others nothing depends on it: the one run stands for all of their schedules.
  if (!runner.draws()) {
    const auto stands_for_all = [&](std::size_t i) {
      return usual.order_dependent.count(i) + more.order_dependent.count(i) == 0;
    };
    reached.erase(std::remove_if(reached.begin(), reached.end(), stands_for_all), reached.end());
  }
  if (!reached.empty()) {
    const std::int64_t schedules = of_values        ? options.few
                                   : timing.empty() ? options.drawn
                                                    : options.more;
    if (!of_values && !timing.empty()) {
      found = runner.run_held(changed, runner.cheapest_first(reached));
      if (!found.clean()) return found;
    }
    // A schedule of each further one has been run.
    const std::int64_t few = timing.empty() ? 0 : options.few;
    found = runner.run_control(changed, reached, schedules, by_usual ? few : schedules);
    if (!found.clean()) return found;
  }
  if (is_off_by_one(result.mutant)) {
    found = runner.run_candidates(changed, result.mutant);
    if (!found.clean()) return found;
  }
  if (of_values) {
    result.reason = why_not_wrong(runner);
  } else if (timing.empty()) {
    find_equivalent(
        result,
        "nothing depends on the order of the work, and in no order is anything unordered "
        "without it: other waits order the same");
  } else {
    result.reason = fmt::format("it depends on the order of the work, as {}", timing);
  }
  return {};
}

// Of the kernel that the mutant has made.
void judge(const ir::Kernel& changed, const ProofOptions& options, MutantRunner& runner,
           MutantResult& result) {
  const std::string& rule = result.mutant.equivalent;
  MutantRun found;
  try {
    target::verify(changed);
    found = rule.empty() ? look_for_fault(changed, options, runner, result)
                         : runner.run_equivalent(changed);
  } catch (const OwnFault& own) {
    throw own.error;
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

void judge_all_ways(const ir::Kernel& machine, const ProofOptions& options, MutantRunner& runner,
                    MutantResult& result) {
  judge(result.mutant.apply(machine), options, runner, result);
  for_other_ways(result, [&](MutantResult& other) {
    judge(other.mutant.apply(machine), options, runner, other);
  });
}

// All mutants of the kernel, or those that are asked for.
std::vector<MutantResult> mutants_to_judge(const ir::Kernel& machine, const ProofOptions& options) {
  std::vector<MutantResult> all = list_mutants(machine), wanted;
  std::map<std::size_t, std::size_t> places;  // sites in order, and which of them it is
  for (const MutantResult& result : all) places[result.mutant.site] = 0;
  std::size_t count = 0;
  for (auto& [site, number] : places) number = count++;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (places.at(all[i].mutant.site) % options.parts != options.part) continue;
    if (!options.mutants || options.mutants->count(i) != 0) wanted.push_back(std::move(all[i]));
  }
  return wanted;
}

}  // namespace

bool shows_in_values(const simulator::FaultKind& kind) {
  return std::find(kind.classes.begin(), kind.classes.end(), "mismatch") != kind.classes.end();
}

void for_other_ways(MutantResult& result, const std::function<void(MutantResult&)>& judge) {
  if (result.verdict != Verdict::undecided) return;
  for (const simulator::Mutant::Way& way : result.mutant.others) {
    MutantResult other;
    other.kind = result.kind;
    other.subject = result.subject;
    other.mutant = result.mutant;
    other.mutant.edit = way.edit;
    other.mutant.division = way.division;
    judge(other);
    if (other.verdict != Verdict::caught) continue;
    other.shown_by = way.change;
    result = std::move(other);
    return;
  }
}

bool is_division(const simulator::Mutant& mutant) {
  return mutant.division != simulator::Mutant::Division::none;
}

bool is_off_by_one(const simulator::Mutant& mutant) {
  return !mutant.others.empty() || is_division(mutant);
}

std::vector<MutantResult> list_mutants(const ir::Kernel& machine) {
  std::vector<MutantResult> all;
  const simulator::Sites sites(machine);
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (simulator::Mutant& mutant : simulator::mutants_of(kind, sites)) {
      MutantResult& result = all.emplace_back();
      result.kind = &kind;
      result.mutant = std::move(mutant);
    }
  }
  return all;
}

std::int64_t most_operations(std::int64_t usual) {
  constexpr std::int64_t kTimes = 20, kMore = 500'000;
  return kTimes * usual + kMore;
}

MachineReport report_of(const std::function<MachineReport()>& run, bool finds_refusals) {
  try {
    return run();
  } catch (const Error& error) {
    MachineReport report;
    if (error.kind() == ErrorKind::result) {
      report.faults.push_back(
          {"deadlock", error.location(), {}, "deadlock: without an end: " + error.message(), {}});
    } else if (finds_refusals && error.kind() == ErrorKind::usage) {
      report.faults.push_back({"refused", error.location(), {}, error.message(), {}});
    } else {
      throw;
    }
    return report;
  }
}

HeldRun run_held(std::int64_t operations,
                 const std::function<MachineReport(const simulator::MachineOptions&)>& run) {
  simulator::MachineOptions machine;
  machine.control_only = true;
  machine.search = simulator::Search::held;
  machine.seed = UINT64_MAX;  // none, which counts them
  MachineReport report = run(machine);
  HeldRun found;
  found.operations = report.operations;
  const std::int64_t all = report.choices;
  const std::int64_t count =
      std::min(all, operations / std::max<std::int64_t>(report.operations, 1));
  for (std::int64_t i = 0; i < count && report.ok(); ++i) {
    machine.seed = static_cast<std::uint64_t>(i * all / count);
    report = run(machine);
    found.operations += report.operations;
  }
  if (report.ok()) return found;
  found.fault = std::move(report.faults.front());
  found.fault.message += fmt::format("\n  with --search held --seed {}", machine.seed);
  found.seed = machine.seed;
  return found;
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
                                          const Advance& advance) {
  const unsigned threads = thread_count(options.threads);
  std::vector<MutantRunner> runners(threads, MutantRunner(machine, workloads, options));
  runners.front().require_clean();
  std::vector<MutantResult> results = mutants_to_judge(machine, options);
  if (begin) begin(static_cast<std::int64_t>(results.size()));
  in_parallel(threads, results.size(), [&](std::size_t i, unsigned thread) {
    judge_all_ways(machine, options, runners[thread], results[i]);
    if (advance) advance(results[i]);
  });
  return results;
}

std::string form_of(ir::Kernel kernel) {
  kernel.name.clear();
  return fmt::format("{:016x}", ir::form_hash(kernel));
}

}  // namespace tilewright::checks
