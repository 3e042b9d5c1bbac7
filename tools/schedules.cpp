#include "schedules.h"

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

// All launches of a schedule; whether none of them has a fault. Clears `hangs` where nothing in
// them hangs on the order of the work.
bool launch(const Request& request, const Simulated& simulated, simulator::MachineOptions options,
            Outcome& outcome, bool& hangs) {
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
    if (!report.ok()) return false;
    any = any || !report.timing.empty() || !report.words.empty();
  }
  hangs = any;
  return true;
}

}  // namespace

simulator::MachineOptions machine_options(const Request& request) {
  simulator::MachineOptions options;
  options.control_only = request.control_only;
  options.strict = request.strict;
  options.provenance = request.provenance;
  options.timing = request.one_for_all;
  options.search =
      request.search == "delays" ? simulator::Search::delays : simulator::Search::random;
  return options;
}

void execute(const Request& request, const Simulated& simulated, simulator::MachineOptions options,
             Outcome& outcome) {
  const bool delays = options.search == simulator::Search::delays;
  Case done;
  done.sizes = simulated.sizes;
  std::int64_t available = INT64_MAX;
  if (delays) {
    done.possible = delayed_schedules(simulated, options);
    const auto possible = static_cast<std::uint64_t>(done.possible);
    available = possible > request.seed ? static_cast<std::int64_t>(possible - request.seed) : 1;
  }
  done.schedules = std::min(request.schedules, available);
  ProgressBar progress("schedules", done.schedules);
  for (std::int64_t schedule = 0; schedule < done.schedules; ++schedule) {
    const std::int64_t step = delays ? spread(schedule, done.schedules, available) : schedule;
    options.seed = request.seed + static_cast<std::uint64_t>(step);
    bool hangs = true;
    const bool finished = launch(request, simulated, options, outcome, hangs);
    // What a faulty execution leaves in the outputs means nothing.
    if (finished && simulated.compare) {
      library::Comparison comparison = simulated.compare();
      if (done.comparison.outputs.empty() || comparison.share() > done.comparison.share()) {
        done.comparison = std::move(comparison);
      }
    }
    progress.advance();
    if (options.timing && finished && !hangs && !simulated.draws) {
      done.one_for_all = true;
      break;
    }
  }
  outcome.cases.push_back(std::move(done));
}

}  // namespace tilewright::tools
