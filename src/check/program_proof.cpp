#include "check/program_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "check/addition_orders.h"
#include "check/own_program.h"
#include "check/phases.h"
#include "check/program_mutants.h"
#include "compiler/simulation.h"
#include "library/program_simulation.h"
#include "simulator/faults/program_faults.h"
#include "support/diagnostic.h"
#include "support/parallel.h"
#include "target/verify.h"

namespace tilewright::checks {
namespace {

using Verdict = MutantResult::Verdict;

struct Found {
  simulator::Fault fault;  // no kind: none
  std::size_t number = 0;  // of the case
  std::uint64_t seed = 0;
  std::int64_t operations = 0;  // executed by warps
  // What depends on the order of the work, or on who comes first to a word; empty: nothing.
  std::string timing = {}, words = {};
  simulator::ArrivalsInTime arrivals = {};
  bool is_handed_out = false;  // MachineReport
  explicit operator bool() const { return !fault.kind.empty(); }
  bool depends_on_order() const { return !timing.empty() || !words.empty(); }
};

bool waits_in_streams(const ir::Program& program) {
  return std::any_of(program.operations.begin(), program.operations.end(), [](const auto& each) {
    return each.kind == ir::ProgramOperation::Kind::wait;
  });
}

// What a mutant makes of the program, whatever its sizes.
using Change = std::function<ir::Program(const ProgramCase&)>;

class Prover {
 public:
  Prover(const std::vector<ProgramCase>& cases, const std::vector<ir::Kernel>& kernels,
         const ProofOptions& options, const CaseMakers& candidates)
      : cases_(cases),
        kernels_(kernels),
        options_(options),
        candidates_(candidates),
        own_(cases, kernels, options),
        cheapest_first_(cheapest_first(cases)),
        made_candidates_(candidates.size()),
        streams_wait_(waits_in_streams(cases.front().program)) {}

  // Raises where the program has a fault of its own, of which the others tell once they are run.
  void require_clean() const {
    try {
      own_.wanted(cheapest_first_.front());
    } catch (const OwnFault& own) {
      throw own.error;
    }
  }

  void judge(const Seeded& seeded, MutantResult& result) const {
    judge_one_way(seeded, result);
    for_other_ways(result, [&](MutantResult& other) { judge_one_way(seeded, other); });
  }

 private:
  static constexpr std::size_t kFewCases = 3;
  static constexpr std::int64_t kCheaper = 4;
  using Numbers = std::vector<std::size_t>;  // of cases

  // The program with a change, bound to the sizes of each case, and what its runs have shown.
  struct Runs {
    Runs(const std::vector<ProgramCase>& all_cases, const Change& change,
         const std::vector<ir::Kernel>& its_kernels)
        : cases(all_cases),
          kernels(its_kernels),
          depends(cases.size(), draws_conditions(its_kernels)),
          stands_for_all(cases.size(), false),
          hands_out(cases.size(), false) {
      for (const ProgramCase& each : cases) {
        programs.push_back(executed(each, change(each)));
      }
    }
    void note(std::size_t number, const Found& found) {
      arrivals.join(found.arrivals);
      if (stands_for_all[number] || !found.depends_on_order()) return;
      depends[number] = true;
      if (timing.empty()) timing = found.timing;
      if (words.empty()) words = found.words;
      if (!cases[number].one_cluster || found.words.empty()) return;
      hands_out[number] = true;
      if (timing.empty() && !found.is_handed_out) timing = found.words;
    }
    const std::vector<ProgramCase>& cases;
    const std::vector<ir::Kernel>& kernels;
    std::vector<ir::Program> programs;
    std::vector<bool> depends;         // cases in which something depends on the order of the work
    std::vector<bool> stands_for_all;  // cases of which one run does
    std::vector<bool> hands_out;       // those of one cluster whose warps share numbers out
    // What does; and what clusters find in words that they share.
    std::string timing, words;
    simulator::ArrivalsInTime arrivals;
  };

  void judge_one_way(const Seeded& seeded, MutantResult& result) const {
    try {
      Found found = seeded.program ? run_program(seeded) : run_kernel(seeded, result);
      if (found) return catch_mutant(result, std::move(found));
      if (result.verdict != Verdict::undecided) return;
      const bool is_order = seeded.program && is_of_order(*seeded.program);
      if (!is_order && shows_in_values(*result.kind)) {
        if (nobody_reads_zeros_of(seeded)) {
          result.verdict = Verdict::equivalent;
          result.reason = "in no order is what it would set to zero read before it is written over";
        } else if (result.reason.empty()) {
          result.reason = "no result is wrong on these inputs, and no rule says that none can be";
        }
        return;
      }
      // Changes to waits, events and signals that leave everything in order leave the results too.
      const bool depends = !found.timing.empty();
      const bool is_as_none = depends && waits_as_none(seeded);
      result.verdict = depends && !is_as_none ? Verdict::undecided : Verdict::equivalent;
      result.reason =
          is_as_none ? "it waits for less, and in no order is anything unordered without the wait"
          : depends  ? fmt::format("it depends on the order of the work, as {}", found.timing)
                     : "nothing depends on the order of the work, and in no order is anything "
                       "unordered without it: other waits order the same, or nothing has to be";
    } catch (const OwnFault& own) {
      throw own.error;
    } catch (const Error& error) {
      result.verdict = Verdict::rejected;
      result.fault = {"rejected", error.location(), {}, error.message(), {}};
    }
  }

  // Whether all zeros that it leaves out are written over before anybody reads them, in each size.
  bool nobody_reads_zeros_of(const Seeded& seeded) const {
    if (!seeded.program || seeded.program->is_of_recorded()) return false;
    const std::size_t site = seeded.program->site;
    return std::all_of(affordable().begin(), affordable().end(), [&](std::size_t number) {
      const ir::ProgramOperation& zero = cases_[number].program.operations[site];
      return zero.kind == ir::ProgramOperation::Kind::zero &&
             !own_.reads_zeros(number, zero.to.buffer, zero.to.rank);
    });
  }
  // A wait for less lets its stream go on later than none would, and not later than the wait
  // itself. Each of its runs is one of the program without the wait: where these are ordered in
  // all orders of the work, so is it. It does not stand still, since the words grow that it waits
  // for.
  bool waits_as_none(const Seeded& seeded) const {
    if (!seeded.program || !seeded.program->waits_for_less) return false;
    Seeded without = seeded;
    without.program = seeded.program->left_out();
    const Found found = run_program(without);
    return !found && found.timing.empty();
  }

  static ir::Program unchanged(const ProgramCase& each) { return each.program; }
  Found run_program(const Seeded& seeded) const {
    const auto change = [&](const ProgramCase& each) {
      return seeded.program->apply(each.program, each.rebind);
    };
    std::optional<Runs> runs;
    try {
      runs.emplace(cases_, change, kernels_);
    } catch (const Error& error) {
      if (!seeded.program->is_of_recorded()) throw;
      return {refusal_of(error), 0, options_.seed};
    }
    if (Found found = run_order(*runs, affordable())) return found;
    return run_on(*runs, affordable(), false, std::nullopt);
  }
  Found run_kernel(const Seeded& seeded, MutantResult& result) const {
    std::vector<ir::Kernel> changed = kernels_;
    changed[seeded.kernel] = result.mutant.apply(kernels_[seeded.kernel]);
    target::verify(changed[seeded.kernel]);
    Runs runs(cases_, unchanged, changed);
    const bool is_of_values = shows_in_values(*result.kind) || draws_conditions(changed);
    // What changes computations alone shows in values first.
    if (!result.mutant.computations.empty()) {
      if (Found found = run_cheapest(runs)) return found;
    }
    if (Found found = run_order(runs, affordable())) return found;
    if (!result.mutant.equivalent.empty()) return judge_rule(runs, result);
    const std::optional<std::size_t> alone = reached_by(seeded, result.mutant, true);
    const std::optional<std::size_t> reached =
        alone ? alone : reached_by(seeded, result.mutant, false);
    if (!reached) {
      result.verdict = Verdict::unreached;
      return {};
    }
    if (!is_affordable(*reached)) {
      if (Found found = run_order(runs, {*reached})) return found;
    }
    // What leaves all accesses in order leaves the results: a change of order has one with values.
    Numbers valued = is_of_values ? affordable() : Numbers{};
    if (!is_of_values || !is_affordable(*reached)) valued.push_back(*reached);
    Found found = run_on(runs, valued, is_of_values, alone);
    // Other divisors make other numbers on any inputs.
    if (!found && shows_in_values(*result.kind) && !is_division(result.mutant)) {
      found = run_unusual(runs, *reached);
      // Of several blocks, the later ones may outweigh those before.
      const std::size_t largest = largest_usual();
      if (!found && largest != *reached) found = run_unusual(runs, largest);
    }
    if (found || !is_off_by_one(result.mutant)) return found;
    return run_candidates(seeded, result, changed);
  }
  // With values, of as many candidates as there is time for: of another divisor those in which it
  // makes another number. Where no size has one, `result` gets to know.
  Found run_candidates(const Seeded& seeded, MutantResult& result,
                       const std::vector<ir::Kernel>& changed) const {
    using Division = simulator::Mutant::Division;
    const Division division = result.mutant.division;
    const bool by_another = division == Division::by_one_more || division == Division::by_one_less;
    std::vector<ir::Kernel> probed = kernels_;
    if (by_another) probed[seeded.kernel] = result.mutant.probe_number(kernels_[seeded.kernel]);
    const auto tells = [&](const Prover& prover, std::size_t number) {
      return !by_another ||
             prover.run_once(number, prover.own_.program(number), probed, options_.seed, false);
    };
    bool any = std::any_of(cheapest_first_.begin(), cheapest_first_.end(),
                           [&](std::size_t number) { return tells(*this, number); });
    std::int64_t operations = 0;
    for (std::size_t i = 0; i < candidates_.size() && operations < options_.to_divide; ++i) {
      const Prover& prover = candidate(i);
      if (!tells(prover, 0)) {
        // To look takes no arithmetic.
        operations += prover.own_.operations(0) / kCheaper;
        continue;
      }
      any = true;
      operations += prover.own_.operations(0);
      Found found = prover.run_once(0, prover.own_.program(0), changed, options_.seed, true);
      found.number = cases_.size() + i;
      if (found) return found;
    }
    if (!any) {
      result.reason = "in no size is what it makes another number, and no rule says that none is";
    }
    return {};
  }
  // What it does without a change, each mutant asks again.
  const Prover& candidate(std::size_t i) const {
    Candidate& made = made_candidates_[i];
    std::call_once(made.once, [&] {
      made.cases.push_back(candidates_[i]());
      made.prover = std::make_unique<Prover>(made.cases, kernels_, options_, no_candidates_);
    });
    return *made.prover;
  }
  // Of what a rule calls equivalent.
  Found judge_rule(Runs& runs, MutantResult& result) const {
    const std::size_t number = cheapest_first_.front();
    Found found = run_once(number, runs.programs[number], runs.kernels, options_.seed, true);
    if (found) return found;
    result.verdict = Verdict::equivalent;
    result.reason = result.mutant.equivalent;
    return {};
  }
  // The cheapest case that comes to the mutant, of one cluster or of more.
  std::optional<std::size_t> reached_by(const Seeded& seeded, const simulator::Mutant& mutant,
                                        bool one_cluster) const {
    std::vector<ir::Kernel> probed = kernels_;
    probed[seeded.kernel] = mutant.probe(kernels_[seeded.kernel]);
    const bool wherever = mutant.matters_if == ir::kNoValue && !mutant.in_later_turns;
    for (const std::size_t number : cheapest_first_) {
      if (cases_[number].one_cluster != one_cluster) continue;
      const std::optional<bool> comes =
          wherever ? own_.comes_to(number, seeded.kernel, mutant.site) : std::nullopt;
      if (comes) {
        if (*comes) return number;
        continue;
      }
      if (run_once(number, own_.program(number), probed, options_.seed, false)) return number;
    }
    return std::nullopt;
  }

  std::size_t largest_usual() const {
    const auto last = std::find_if(cheapest_first_.rbegin(), cheapest_first_.rend(),
                                   [&](std::size_t number) { return !cases_[number].further; });
    return last == cheapest_first_.rend() ? cheapest_first_.front() : *last;
  }
  // All but the further cases that take long, cheapest first.
  const Numbers& affordable() const {
    std::call_once(afforded_, [&] {
      std::int64_t operations = 0;  // of the further ones
      for (const std::size_t number : cheapest_first_) {
        if (cases_[number].further) {
          if (operations >= options_.of_further) continue;
          operations += own_.operations(number);
        }
        affordable_.push_back(number);
      }
    });
    return affordable_;
  }
  bool is_affordable(std::size_t number) const {
    return std::count(affordable().begin(), affordable().end(), number) != 0;
  }

  // Of the cases one schedule without values, which most faults need none of. Where streams wait
  // for words some schedules may have what happened to come later, and others stand for all.
  Found run_order(Runs& runs, const Numbers& numbers) const {
    const std::int64_t most = streams_wait_ ? options_.few : 1;
    for (const std::size_t number : numbers) {
      Found found;
      for (std::int64_t i = 0; i == 0 || (i < most && found.depends_on_order()); ++i) {
        found = run_once(number, runs.programs[number], runs.kernels,
                         options_.seed + static_cast<std::uint64_t>(i), false);
        if (found) return found;
      }
      runs.note(number, found);
      runs.stands_for_all[number] = !runs.depends[number];
    }
    return {};
  }
  // Then these cases with values, and many schedules without where something depends on the order
  // of the work. A wrong result of what is no fault of values says nothing of where it comes from:
  // another schedule may.
  // One cluster takes all numbers from a word in their order, or its warps in each order that there
  // is. More of them share these out: a few schedules draw how, where what there is to show of a
  // change shows with a cluster `alone`.
  Found run_on(Runs& runs, const Numbers& valued, bool is_of_values,
               std::optional<std::size_t> alone) const {
    Found mismatch = run_values(runs, valued, is_of_values);
    if (mismatch && (is_of_values || mismatch.fault.kind != "mismatch")) return mismatch;
    if (runs.timing.empty() && !alone) runs.timing = runs.words;
    if (runs.timing.empty() && !is_of_values) {
      if (Found found = run_handed(runs, alone)) return found;
    }
    if (runs.timing.empty()) runs.timing = runs.arrivals.never_awaited();
    const std::int64_t most =
        runs.timing.empty() || mismatch || is_of_values ? options_.few : options_.more;
    if (Found found = run_schedules(runs, most)) return found;
    mismatch.timing = std::move(runs.timing);
    return mismatch;
  }
  Found run_values(Runs& runs, const Numbers& numbers, bool is_of_values) const {
    Found mismatch;
    for (const std::size_t number : numbers) {
      for (std::int64_t i = 0; i < own_.schedules(); ++i) {
        Found found = run_once(number, runs.programs[number], runs.kernels,
                               options_.seed + static_cast<std::uint64_t>(i), true);
        if (found && (is_of_values || found.fault.kind != "mismatch")) return found;
        runs.note(number, found);
        if (found && !mismatch) mismatch = std::move(found);
        // The one run stands for all.
        if (!runs.depends[number]) break;
      }
    }
    return mismatch;
  }
  // On inputs that are not drawn as usual, of one case.
  Found run_unusual(const Runs& runs, std::size_t number) const {
    for (const OwnProgram::Unusual& unusual : own_.unusual(number)) {
      library::ProgramTensors after;
      simulator::MachineReport report = report_of([&] {
        return library::simulate_program(runs.programs[number], runs.kernels, unusual.before,
                                         &after, own_.without_order(number), options_.launches);
      });
      Found found{{}, number, options_.seed, report.operations};
      if (!report.ok()) {
        found.fault = std::move(report.faults.front());
      } else {
        found.fault =
            mismatch(library::compare_buffers(runs.programs[number], after, unusual.wanted));
      }
      if (!found) continue;
      found.fault.message += "\n  where " + unusual.how;
      return found;
    }
    return {};
  }
  // With values, of the cheapest cases one schedule.
  Found run_cheapest(const Runs& runs) const {
    for (std::size_t place = 0; place < std::min(kFewCases, cases_.size()); ++place) {
      const std::size_t number = cheapest_first_[place];
      Found found = run_once(number, runs.programs[number], runs.kernels, options_.seed, true);
      if (found) return found;
    }
    return {};
  }
  // Without values, of the cheapest cases in which something depends on the order of the work:
  // `most` of each, or what there is time for, which is `few` at least.
  Found run_schedules(const Runs& runs, std::int64_t most) const {
    std::vector<std::size_t> order_dependent;
    std::copy_if(cheapest_first_.begin(), cheapest_first_.end(),
                 std::back_inserter(order_dependent),
                 [&](std::size_t number) { return runs.depends[number]; });
    if (most > options_.few) {
      if (Found found = run_held(runs, order_dependent)) return found;
    }
    order_dependent.resize(std::min(kFewCases, order_dependent.size()));
    std::int64_t operations = 0;  // of all of them together
    for (std::int64_t i = 1; i < most; ++i) {
      if (i >= options_.few && operations >= options_.operations) break;
      for (const std::size_t number : order_dependent) {
        Found found = run_once(number, runs.programs[number], runs.kernels,
                               options_.seed + static_cast<std::uint64_t>(i), false);
        if (found) return found;
        operations += found.operations;
      }
    }
    return {};
  }
  // Of the cases of one cluster whose warps share numbers out, each order of that. Each case has
  // half of the operations that those before have left: the larger ones have too many orders, but
  // the one that is `alone` must not. Of each arrival somebody has to wait for a phase, in one of
  // the orders that are run.
  Found run_handed(Runs& runs, std::optional<std::size_t> alone) const {
    std::int64_t operations = options_.operations;
    simulator::ArrivalsInTime arrivals = runs.arrivals;
    for (const std::size_t number : cheapest_first_) {
      if (!runs.hands_out[number]) continue;
      AdditionOrders orders =
          each_order(number, runs.programs[number], runs.kernels, operations / 2);
      if (!orders.fault.kind.empty()) {
        return {std::move(orders.fault), number, orders.seed, orders.operations};
      }
      operations -= orders.operations;
      if (runs.timing.empty()) runs.timing = orders.timing;
      if (runs.timing.empty() && orders.all) runs.timing = other_phases(number, orders.phases);
      arrivals.join(orders.arrivals);
      if (runs.timing.empty() && number == alone && !orders.all) runs.timing = runs.words;
      if (!runs.timing.empty()) return {};
    }
    const auto& handing = runs.hands_out;
    const bool any = std::find(handing.begin(), handing.end(), true) != handing.end();
    if (!any) return {};
    // A ring that is never full says nothing of what is released.
    if (Found found = fill_rings(runs, arrivals)) return found;
    if (runs.timing.empty() && !arrivals.all_awaited()) {
      runs.timing = "an arrival for whose phases nothing waits in any size";
    }
    return {};
  }
  // Candidates in which one warp takes all numbers, as many as there is time for. Somebody may wait
  // for an arrival where other waits order the same: a longer share of one warp has fewer of these.
  Found fill_rings(Runs& runs, simulator::ArrivalsInTime& arrivals) const {
    std::int64_t operations = options_.operations / kCheaper;
    for (std::size_t i = 0; i < candidates_.size() && operations > 0; ++i) {
      const Prover& prover = candidate(i);
      if (!prover.cases_.front().one_cluster) continue;
      AdditionOrders orders = prover.each_order(0, prover.own_.program(0), runs.kernels, 0);
      if (!orders.fault.kind.empty()) {
        return {std::move(orders.fault), cases_.size() + i, orders.seed, orders.operations};
      }
      operations -= orders.operations;
      runs.timing = std::move(orders.timing);
      if (!runs.timing.empty()) break;
      arrivals.join(orders.arrivals);
    }
    return {};
  }
  AdditionOrders each_order(std::size_t number, const ir::Program& program,
                            const std::vector<ir::Kernel>& kernels, std::int64_t most) const {
    return checks::each_order(cases_[number].machine, most,
                              [&](const simulator::MachineOptions& machine) {
                                return run_machine(number, program, kernels, machine, nullptr);
                              });
  }
  // What a change leaves to longer launches: a phase that no longer comes to its end may be one
  // that they wait for.
  std::string other_phases(std::size_t number, const std::vector<std::int64_t>& changed) const {
    const std::lock_guard lock(own_phases_mutex_);
    std::vector<std::int64_t>& own = own_phases_[number];
    if (own.empty()) {
      own = each_order(number, own_.program(number), kernels_, options_.operations).phases;
    }
    if (own.size() != changed.size()) return "the orders in which its warps take numbers";
    const auto [mine, other] = std::mismatch(own.begin(), own.end(), changed.begin());
    return mine == own.end() ? std::string() : checks::other_phases(*mine, *other);
  }
  // Each case has half of the operations that those before have left.
  Found run_held(const Runs& runs, const Numbers& numbers) const {
    std::int64_t operations = options_.operations;
    for (const std::size_t number : numbers) {
      HeldRun found = checks::run_held(operations / 2, [&](const simulator::MachineOptions& how) {
        simulator::MachineOptions machine = cases_[number].machine;
        machine.control_only = true;
        machine.search = how.search;
        machine.seed = how.seed;
        return run_machine(number, runs.programs[number], runs.kernels, machine, nullptr);
      });
      if (!found.fault.kind.empty()) return {std::move(found.fault), number, found.seed};
      operations -= found.operations;
    }
    return {};
  }
  simulator::MachineReport run_machine(std::size_t number, const ir::Program& program,
                                       const std::vector<ir::Kernel>& kernels,
                                       simulator::MachineOptions machine,
                                       library::ProgramTensors* after) const {
    machine.max_operations = most_operations(own_.operations(number));
    return report_of([&] {
      return library::simulate_program(program, kernels, own_.before(number, after != nullptr),
                                       after, machine, options_.launches);
    });
  }
  Found run_once(std::size_t number, const ir::Program& program,
                 const std::vector<ir::Kernel>& kernels, std::uint64_t seed, bool values) const {
    simulator::MachineOptions machine = cases_[number].machine;
    machine.seed = seed;
    machine.control_only = !values;
    machine.timing = true;
    library::ProgramTensors after;
    simulator::MachineReport report =
        run_machine(number, program, kernels, machine, values ? &after : nullptr);
    if (!report.ok()) return {std::move(report.faults.front()), number, seed, report.operations};
    Found clean{{},
                number,
                seed,
                report.operations,
                std::move(report.timing),
                std::move(report.words),
                std::move(report.arrivals),
                report.is_handed_out};
    if (!values) return clean;
    const library::Comparison comparison =
        library::compare_buffers(program, after, own_.wanted(number));
    clean.fault = mismatch(comparison);
    return clean;
  }
  static simulator::Fault mismatch(const library::Comparison& comparison) {
    if (comparison.ok()) return {};
    return {"mismatch", {}, {}, "mismatch: " + comparison.text(), {}};
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
  const CaseMakers& candidates_;
  const OwnProgram own_;
  const Numbers cheapest_first_;
  mutable std::once_flag afforded_;
  mutable Numbers affordable_;
  struct Candidate {
    std::once_flag once;
    std::vector<ProgramCase> cases;  // one
    std::unique_ptr<Prover> prover;
  };
  const CaseMakers no_candidates_ = {};
  mutable std::vector<Candidate> made_candidates_;
  const bool streams_wait_;  // for words
  mutable std::mutex own_phases_mutex_;
  mutable std::map<std::size_t, std::vector<std::int64_t>> own_phases_;  // by case, of each order
};

}  // namespace

ProgramCase program_case(const ir::Program& program, const simulator::MachineOptions& machine,
                         std::uint64_t seed) {
  return {program, machine, ir::initial_tensors(program, {}, seed + 1)};
}

std::vector<MutantResult> prove_program(const std::vector<ProgramCase>& cases,
                                        const std::vector<ir::Kernel>& kernels,
                                        const ProofOptions& options,
                                        const std::function<void(std::int64_t)>& begin,
                                        const Advance& advance, bool all_of_kernels,
                                        const CaseMakers& candidates) {
  Prover prover(cases, kernels, options, candidates);
  prover.require_clean();
  ProgramMutants all =
      program_mutants_of(cases.front().program, cases.front().recorded, kernels, all_of_kernels);
  keep_part(options, all);
  if (begin) begin(static_cast<std::int64_t>(all.results.size()));
  in_parallel(thread_count(options.threads), all.results.size(), [&](std::size_t i, unsigned) {
    prover.judge(all.seeded[i], all.results[i]);
    if (advance) advance(all.results[i]);
  });
  return std::move(all.results);
}

}  // namespace tilewright::checks
