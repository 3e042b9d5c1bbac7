#include "schedules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "support/diagnostic.h"
#include "support/progress.h"

namespace tilewright::tools {
namespace {

// Each once.
void add_faults(std::vector<simulator::Fault>& faults, const std::vector<simulator::Fault>& found) {
  const auto key = [](const simulator::Fault& fault) {
    return fault.kind + format_location(fault.first) + '|' + format_location(fault.second);
  };
  std::set<std::string> known;
  for (const simulator::Fault& fault : faults) known.insert(key(fault));
  for (const simulator::Fault& fault : found) {
    if (known.insert(key(fault)).second) faults.push_back(fault);
  }
}

// The n-th of `count` numbers that lie evenly among 0 ... available - 1.
std::int64_t spread(std::int64_t n, std::int64_t count, std::int64_t available) {
  return n * (available / count) + n * (available % count) / count;
}

// Those without a delay, with one, and with two, at the choices that the first of them has.
std::int64_t delayed_schedules(const Simulated& simulated, simulator::MachineOptions options) {
  options.seed = 0;
  const std::int64_t choices = simulated.launch(options).choices;
  return 1 + choices * (choices + 1) / 2;
}

bool draws(const Simulated& simulated, const simulator::MachineOptions& options) {
  return options.control_only && simulated.has_conditions;
}

// All launches of a schedule; whether none of them has a fault. Clears `order_matters` where
// nothing in them depends on the order of the work.
bool launch(const Request& request, const Simulated& simulated, simulator::MachineOptions options,
            Outcome& outcome, bool& order_matters) {
  bool any = false;
  simulator::OwnedMemory owned;
  options.owned = &owned;
  for (std::int64_t launch = 0; launch < simulated.launches; ++launch) {
    options.launch = static_cast<std::uint64_t>(launch);
    const bool clean = outcome.faults.empty();
    options.max_operations = request.max_operations - outcome.operations;
    const bool traces = clean && !request.traces.empty();
    compiler::TracedRun run;
    if (traces) {
      run = compiler::trace_run(simulated.launch, options);
      if (!run.report.ok() || !outcome.trace) outcome.trace = std::move(run.trace);
    } else {
      run.report = simulated.launch(options);
    }
    const simulator::MachineReport& report = run.report;
    if (clean && !report.ok()) {
      outcome.seed = options.seed;
      outcome.sizes = simulated.sizes;
    }
    add_faults(outcome.faults, report.faults);
    outcome.operations += report.operations;
    if (outcome.units.empty() && report.ok()) {
      outcome.units = report.units;
      outcome.cycles = report.cycles;
    }
    if (!report.ok()) return false;
    any = any || !report.timing.empty() || !report.words.empty();
    // The next one would be the same.
    if (options.timing && !any && !draws(simulated, options) && owned.buffers.empty()) break;
  }
  order_matters = any;
  return true;
}

// One schedule, with what its results are off by. Whether something depends on the order of the
// work; true too where a fault ended it.
bool execute_one(const Request& request, const Execution& execution, std::uint64_t seed, Case& done,
                 Outcome& outcome) {
  simulator::MachineOptions options = execution.options;
  options.seed = seed;
  options.control_only = options.control_only || done.without_values;
  bool order_matters = true;
  const std::int64_t before = outcome.operations;
  const bool finished = launch(request, execution.simulated, options, outcome, order_matters);
  if (done.operations == 0) done.operations = outcome.operations - before;
  // What a faulty execution leaves in the outputs means nothing.
  if (finished && !options.control_only && execution.simulated.compare) {
    library::Comparison comparison = execution.simulated.compare();
    if (done.comparison.outputs.empty() || comparison.share() > done.comparison.share()) {
      done.comparison = std::move(comparison);
    }
  }
  return !finished || order_matters || draws(execution.simulated, options);
}

// All schedules of the one.
void execute_alone(const Request& request, const Execution& execution, Outcome& outcome) {
  const bool delays = execution.options.search == simulator::Search::delays;
  Case done;
  done.sizes = execution.simulated.sizes;
  std::int64_t available = INT64_MAX;
  if (delays) {
    done.possible = delayed_schedules(execution.simulated, execution.options);
    const auto possible = static_cast<std::uint64_t>(done.possible);
    available = possible > request.seed ? static_cast<std::int64_t>(possible - request.seed) : 1;
  }
  done.schedules = std::min(request.schedules, available);
  ProgressBar progress("schedules", done.schedules);
  for (std::int64_t schedule = 0; schedule < done.schedules; ++schedule) {
    const std::int64_t step = delays ? spread(schedule, done.schedules, available) : schedule;
    const std::uint64_t seed = request.seed + static_cast<std::uint64_t>(step);
    const bool order_matters = execute_one(request, execution, seed, done, outcome);
    progress.advance();
    if (execution.options.timing && !order_matters) {
      done.one_for_all = true;
      break;
    }
  }
  outcome.cases.push_back(std::move(done));
}

// Of each how many of all schedules, where the first one took so many operations. Faults that
// depend on the order show in the smallest sizes: one that takes twice as long has a sixteenth as
// many.
std::vector<std::int64_t> shares_of(std::int64_t schedules,
                                    const std::vector<std::int64_t>& operations) {
  const auto weight = [](std::int64_t each) {
    const auto cost = static_cast<double>(each);
    return 1 / (cost * cost * cost * cost);
  };
  double all = 0;
  for (const std::int64_t each : operations) all += weight(each);
  std::vector<std::int64_t> shares;
  for (const std::int64_t each : operations) {
    const double share = std::ceil(static_cast<double>(schedules) * weight(each) / all);
    shares.push_back(std::max<std::int64_t>(static_cast<std::int64_t>(share), 1));
  }
  return shares;
}

void execute_evenly(const Request& request, const std::vector<Execution>& all, Outcome& outcome) {
  std::vector<Case> cases(all.size());
  std::vector<std::size_t> small_first(all.size()), hanging;
  std::iota(small_first.begin(), small_first.end(), std::size_t{0});
  std::stable_sort(small_first.begin(), small_first.end(), [&](std::size_t a, std::size_t b) {
    return all[a].simulated.bytes < all[b].simulated.bytes;
  });
  std::vector<std::int64_t> operations;
  for (const std::size_t i : small_first) {
    cases[i].sizes = all[i].simulated.sizes;
    cases[i].schedules = 1;
    cases[i].without_values =
        !request.control_only && outcome.operations >= request.valued_operations;
    cases[i].one_for_all = !execute_one(request, all[i], request.seed, cases[i], outcome);
    if (cases[i].one_for_all) {
      cases[i].schedules = request.schedules;
      continue;
    }
    hanging.push_back(i);
    operations.push_back(std::max<std::int64_t>(cases[i].operations, 1));
  }
  const std::vector<std::int64_t> shares = shares_of(request.schedules, operations);
  ProgressBar progress("schedules", std::accumulate(shares.begin(), shares.end(), std::int64_t{0}));
  for (std::size_t place = 0; place < hanging.size(); ++place) {
    Case& done = cases[hanging[place]];
    for (; done.schedules < shares[place]; ++done.schedules) {
      const std::uint64_t seed = request.seed + static_cast<std::uint64_t>(done.schedules);
      execute_one(request, all[hanging[place]], seed, done, outcome);
      progress.advance();
    }
  }
  std::move(cases.begin(), cases.end(), std::back_inserter(outcome.cases));
}

}  // namespace

simulator::MachineOptions machine_options(const Request& request) {
  simulator::MachineOptions options;
  options.control_only = request.control_only;
  options.strict = request.strict;
  options.issue_order = request.issue_order;
  options.provenance = request.provenance;
  options.timing = request.one_for_all;
  options.max_operations = request.max_operations;
  options.search = request.search == "delays" ? simulator::Search::delays
                   : request.search == "held" ? simulator::Search::held
                                              : simulator::Search::random;
  return options;
}

void execute(const Request& request, const std::vector<Execution>& all, Outcome& outcome) {
  if (request.one_for_all && request.search == "random") {
    return execute_evenly(request, all, outcome);
  }
  for (const Execution& each : all) execute_alone(request, each, outcome);
}

}  // namespace tilewright::tools
