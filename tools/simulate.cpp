#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "command.h"
#include "driver/breakage.h"
#include "driver/claims.h"
#include "driver/dump.h"
#include "driver/kernel_source.h"
#include "driver/report/trace_json.h"
#include "driver/report/trace_page.h"
#include "driver/rewrites.h"
#include "driver/simulation.h"
#include "driver/target.h"
#include "simulate_faults.h"
#include "support/diagnostic.h"
#include "support/progress.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

// What was run: one set of sizes, or several shrunken ones.
struct Case {
  std::string sizes;                         // "keys=496 queries=568"; empty: as the command says
  std::int64_t schedules = 0, possible = 0;  // possible: with at most two delays
  driver::Comparison comparison;
  double tolerance = 0;
  bool ok() const { return comparison.max_relative_error <= tolerance; }
};

struct Outcome {
  std::vector<simulator::Fault> faults;   // each once, whatever the schedules that showed it
  std::uint64_t seed = 0;                 // of the first schedule with a fault, else of the first
  std::string sizes;                      // of the same
  std::optional<simulator::Trace> trace;  // of the same
  std::vector<Case> cases;
  std::int64_t operations = 0;
  bool ok() const {
    return faults.empty() &&
           std::all_of(cases.begin(), cases.end(), [](const Case& each) { return each.ok(); });
  }
  std::int64_t schedules() const {
    std::int64_t sum = 0;
    for (const Case& each : cases) sum += each.schedules;
    return sum;
  }
  // The one that is furthest from its tolerance.
  const Case& worst() const {
    return *std::max_element(cases.begin(), cases.end(), [](const Case& a, const Case& b) {
      return a.comparison.max_relative_error * b.tolerance <
             b.comparison.max_relative_error * a.tolerance;
    });
  }
};

class FaultList {
 public:
  explicit FaultList(std::vector<simulator::Fault>& faults) : faults_(faults) {}
  void add(const std::vector<simulator::Fault>& found) {
    for (const simulator::Fault& fault : found) {
      const std::string key =
          fault.kind + format_location(fault.first) + '|' + format_location(fault.second);
      if (known_.insert(key).second) faults_.push_back(fault);
    }
  }

 private:
  std::vector<simulator::Fault>& faults_;
  std::set<std::string> known_;
};

class Execution {
 public:
  Execution(const Request& request, const ir::Kernel& machine, Outcome& outcome)
      : request_(request), machine_(machine), outcome_(outcome), faults_(outcome.faults) {
    options_.control_only = request.control_only;
    options_.strict = request.strict;
    options_.provenance = request.provenance;
    options_.search =
        request.search == "delays" ? simulator::Search::delays : simulator::Search::random;
    if (request.shrunken) options_.multiprocessors = machine.cluster;
    outcome.seed = request.seed;
  }

  void run(driver::Workload& workload, const LibraryKernel& entry, const std::string& sizes) {
    Case& done = outcome_.cases.emplace_back();
    done.sizes = sizes;
    done.tolerance = entry.tolerance(workload.options);
    std::vector<std::vector<double>> reference;
    if (!request_.control_only) reference = driver::reference_of(workload);
    std::int64_t available = INT64_MAX;
    if (options_.search == simulator::Search::delays) {
      done.possible = delayed_schedules(workload);
      const auto possible = static_cast<std::uint64_t>(done.possible);
      available =
          possible > request_.seed ? static_cast<std::int64_t>(possible - request_.seed) : 1;
    }
    done.schedules = std::min(request_.schedules, available);
    ProgressBar progress("schedules", done.schedules);
    for (std::int64_t schedule = 0; schedule < done.schedules; ++schedule) {
      const std::int64_t step = options_.search == simulator::Search::delays
                                    ? spread(schedule, done.schedules, available)
                                    : schedule;
      const bool finished =
          launch(workload, request_.seed + static_cast<std::uint64_t>(step), sizes);
      // What a faulty execution leaves in the outputs means nothing.
      if (finished && !request_.control_only) {
        const driver::Comparison comparison = driver::compare(workload, reference);
        if (comparison.max_relative_error > done.comparison.max_relative_error) {
          done.comparison = comparison;
        }
      }
      progress.advance();
    }
  }

 private:
  // The n-th of `count` numbers that lie evenly among 0 ... available - 1.
  static std::int64_t spread(std::int64_t n, std::int64_t count, std::int64_t available) {
    return n * (available / count) + n * (available % count) / count;
  }

  // Those without a delay, with one, and with two, at the choices that the first of them has.
  std::int64_t delayed_schedules(driver::Workload& workload) const {
    workload.poison_outputs();
    simulator::MachineOptions options = options_;
    options.seed = 0;
    const std::int64_t choices = driver::simulate(machine_, workload.arguments(), options).choices;
    return 1 + choices * (choices + 1) / 2;
  }

  // All launches of a schedule; whether none of them has a fault.
  bool launch(driver::Workload& workload, std::uint64_t seed, const std::string& sizes) {
    options_.seed = seed;
    for (std::int64_t launch = 0; launch < request_.launches; ++launch) {
      workload.poison_outputs();
      const bool clean = outcome_.faults.empty();
      simulator::MachineReport report;
      if (clean && !request_.traces.empty()) {
        driver::TracedRun run = driver::simulate_traced(machine_, workload.arguments(), options_);
        report = std::move(run.report);
        if (!report.ok() || !outcome_.trace) outcome_.trace = std::move(run.trace);
      } else {
        report = driver::simulate(machine_, workload.arguments(), options_);
      }
      if (clean && !report.ok()) {
        outcome_.seed = seed;
        outcome_.sizes = sizes;
      }
      faults_.add(report.faults);
      outcome_.operations += report.operations;
      if (!report.ok()) return false;
    }
    return true;
  }

  const Request& request_;
  const ir::Kernel& machine_;
  Outcome& outcome_;
  FaultList faults_;
  simulator::MachineOptions options_;
};

Json json_of(const simulator::Fault& fault) {
  return {{"kind", fault.kind},
          {"first", format_location(fault.first)},
          {"second", format_location(fault.second)},
          {"missing", fault.missing},
          {"message", fault.message}};
}

// --trace FILE: by its ending.
bool is_page(const std::string& file) { return file.ends_with(".html"); }
void check_traces(const Request& request) {
  for (const std::string& file : request.traces) {
    if (is_page(file) || file.ends_with(".json")) continue;
    Diagnostic({}, fmt::format("--trace {}: neither .html nor .json", file))
        .fix("FILE.html is a page for a browser, FILE.json a trace for Perfetto")
        .raise();
  }
}

// "--seed 3 --input-seed 0": what makes the schedule again.
std::string replay(const Request& request, std::uint64_t seed) {
  const std::uint64_t inputs = request.input_seed.value_or(request.seed);
  return (request.search == "random" ? "" : fmt::format("--search {} ", request.search)) +
         fmt::format("--seed {}", seed) +
         (inputs == seed ? "" : fmt::format(" --input-seed {}", inputs));
}

void write_traces(const Request& request, const Outcome& outcome, const std::string& kernel,
                  const std::string& target) {
  driver::TraceOrigin origin{
      kernel, target, outcome.seed,
      fmt::format("tilewright simulate {} --target {}", request.kernel, request.target)};
  for (const std::string& setting : request.settings) origin.command += " --set " + setting;
  for (const std::string& switched : request.numerics) origin.command += " --numerics " + switched;
  for (const auto& [flag, given] :
       {std::pair(" --control-only", request.control_only),
        std::pair(" --shrunken", request.shrunken), std::pair(" --strict", request.strict),
        std::pair(" --provenance", request.provenance)}) {
    if (given) origin.command += flag;
  }
  if (!request.breakage.empty()) origin.command += " --break " + request.breakage;
  origin.command += " " + replay(request, outcome.seed);
  for (const std::string& file : request.traces) {
    driver::write_text(file, is_page(file) ? driver::trace_page(*outcome.trace, origin)
                                           : driver::trace_events(*outcome.trace, origin));
  }
}

void print_faults(const Request& request, const Outcome& outcome) {
  for (const simulator::Fault& fault : outcome.faults) {
    fmt::print("{}\n", driver::diagnostic_of(fault).render());
  }
  if (!outcome.faults.empty()) {
    fmt::print("replay the first with {}{}\n", replay(request, outcome.seed),
               outcome.sizes.empty() ? "" : fmt::format(", of {}", outcome.sizes));
  }
}

std::string schedules_of(const Case& each) {
  if (each.possible == 0) return fmt::format("{} schedules", each.schedules);
  if (each.schedules >= each.possible) {
    return fmt::format("all {} schedules with at most two delays", each.possible);
  }
  return fmt::format("{} of {} schedules with at most two delays", each.schedules, each.possible);
}

void print_outcome(const Request& request, const Outcome& outcome, const std::string& kernel,
                   const std::string& target) {
  print_faults(request, outcome);
  for (const Case& each : outcome.cases) {
    if (request.shrunken) fmt::print("  {}: {}\n", each.sizes, schedules_of(each));
  }
  const std::string schedules = outcome.cases.size() == 1
                                    ? schedules_of(outcome.cases.front())
                                    : fmt::format("{} schedules", outcome.schedules());
  fmt::print("{} on simulated {}: {}{}, {} operations, {} faults\n", kernel, target, schedules,
             request.launches > 1 ? fmt::format(" of {} launches", request.launches) : "",
             outcome.operations, outcome.faults.size());
  if (!outcome.faults.empty()) return;
  if (request.control_only) {
    fmt::print("control alone: results were not computed\n");
    return;
  }
  const Case& worst = outcome.worst();
  fmt::print("max relative error {:.3g}, tolerance {:.3g}: {}\n",
             worst.comparison.max_relative_error, worst.tolerance, worst.ok() ? "ok" : "too large");
  if (!worst.ok()) fmt::print("{}\n", worst.comparison.worst);
}

Json json_of(const Request& request, const Outcome& outcome, const std::string& kernel,
             const std::string& target) {
  Json faults = Json::array(), cases = Json::array();
  for (const simulator::Fault& fault : outcome.faults) faults.push_back(json_of(fault));
  for (const Case& each : outcome.cases) {
    Json json = {{"sizes", each.sizes}, {"schedules", each.schedules}};
    if (each.possible > 0) json["possible"] = each.possible;
    cases.push_back(std::move(json));
  }
  Json json = {{"ok", outcome.ok()},
               {"kernel", kernel},
               {"target", target},
               {"search", request.search},
               {"schedules", outcome.schedules()},
               {"launches", request.launches},
               {"operations", outcome.operations},
               {"control_only", request.control_only},
               {"strict", request.strict},
               {"faults", faults}};
  if (request.shrunken || request.search == "delays") json["cases"] = cases;
  if (!request.control_only) {
    json["max_relative_error"] = outcome.worst().comparison.max_relative_error;
    json["tolerance"] = outcome.worst().tolerance;
  }
  if (!outcome.faults.empty()) json["replay"] = replay(request, outcome.seed);
  return json;
}

// What is run: one workload as the command says, or shrunken ones.
Subject simulated_subject(const Request& request, const driver::KernelSource& source,
                          const driver::Target& target) {
  if (request.shrunken) return subject_of(request, source, target);
  Subject subject;
  subject.workloads.push_back(workload_of(request, source.entry()));
  subject.sizes.emplace_back();
  const ir::Kernel kernel = source.traced(subject.workloads.front().options, target);
  passes::Rewrites rewrites{driver::parse_numerics(request.numerics), {}};
  subject.machine = driver::lower(kernel, rewrites);
  driver::enforce_claims(subject.machine, nullptr);
  return subject;
}

}  // namespace

int simulate(const Request& request) {
  const driver::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  // "sim:sm_90a" is the same as "sm_90a" here.
  const std::string name =
      request.target.rfind("sim:", 0) == 0 ? request.target.substr(4) : request.target;
  const driver::Target target = driver::parse_target(name);
  if (target.kind != driver::Target::Kind::architecture) {
    Diagnostic({}, fmt::format("target {} is not simulated", request.target))
        .fix("use --target sm_90a")
        .raise();
  }
  if (request.faults) return simulate_faults(request, source, target);
  check_traces(request);
  Subject subject = simulated_subject(request, source, target);
  std::optional<driver::Breakage> breakage;
  if (!request.breakage.empty()) breakage = driver::break_kernel(subject.machine, request.breakage);
  Outcome outcome;
  Execution execution(request, subject.machine, outcome);
  for (std::size_t i = 0; i < subject.workloads.size(); ++i) {
    execution.run(subject.workloads[i], entry, subject.sizes[i]);
  }
  if (outcome.trace) write_traces(request, outcome, subject.machine.name, target.name);

  if (request.json) {
    fmt::print("{}\n", json_of(request, outcome, std::string(entry.name), target.name).dump(2));
  } else {
    if (breakage) {
      fmt::print("{} is broken at {}: {}\n", entry.name, format_location(breakage->where),
                 breakage->what);
    }
    print_outcome(request, outcome, std::string(entry.name), target.name);
  }
  return outcome.ok() ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
