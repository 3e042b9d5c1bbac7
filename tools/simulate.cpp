#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "command.h"
#include "driver/breakage.h"
#include "driver/claims.h"
#include "driver/dump.h"
#include "driver/library_build.h"
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

struct Outcome {
  std::vector<simulator::Fault> faults;   // each once, whatever the schedules that showed it
  std::uint64_t seed = 0;                 // of the first schedule with a fault, else of the first
  std::optional<simulator::Trace> trace;  // of the same
  driver::Comparison comparison;
  std::int64_t operations = 0;
  bool ok(double tolerance) const {
    return faults.empty() && comparison.max_relative_error <= tolerance;
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

Outcome execute(const Request& request, const ir::Kernel& machine, driver::Workload& workload) {
  Outcome outcome;
  outcome.seed = request.seed;
  FaultList faults(outcome.faults);
  std::vector<std::vector<double>> reference;
  if (!request.control_only) reference = driver::reference_of(workload);
  simulator::MachineOptions options;
  options.control_only = request.control_only;
  options.provenance = request.provenance;
  ProgressBar progress("schedules", request.schedules);
  for (std::int64_t schedule = 0; schedule < request.schedules; ++schedule) {
    bool finished = true;
    for (std::int64_t launch = 0; launch < request.launches && finished; ++launch) {
      workload.poison_outputs();
      options.seed = request.seed + static_cast<std::uint64_t>(schedule);
      const bool clean = outcome.faults.empty();
      simulator::MachineReport report;
      if (clean && !request.traces.empty()) {
        driver::TracedRun run = driver::simulate_traced(machine, workload.arguments(), options);
        report = std::move(run.report);
        if (!report.ok() || !outcome.trace) outcome.trace = std::move(run.trace);
      } else {
        report = driver::simulate(machine, workload.arguments(), options);
      }
      if (clean && !report.ok()) outcome.seed = options.seed;
      faults.add(report.faults);
      outcome.operations += report.operations;
      finished = report.ok();
    }
    // What a faulty execution leaves in the outputs means nothing.
    if (finished && !request.control_only) {
      const driver::Comparison comparison = driver::compare(workload, reference);
      if (comparison.max_relative_error > outcome.comparison.max_relative_error) {
        outcome.comparison = comparison;
      }
    }
    progress.advance();
  }
  return outcome;
}

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
  return fmt::format("--seed {}", seed) +
         (inputs == seed ? "" : fmt::format(" --input-seed {}", inputs));
}

void write_traces(const Request& request, const Outcome& outcome, const std::string& kernel,
                  const std::string& target) {
  driver::TraceOrigin origin{
      kernel, target, outcome.seed,
      fmt::format("tilewright simulate {} --target {}", request.kernel, request.target)};
  for (const std::string& setting : request.settings) origin.command += " --set " + setting;
  for (const std::string& switched : request.numerics) origin.command += " --numerics " + switched;
  if (request.control_only) origin.command += " --control-only";
  if (request.provenance) origin.command += " --provenance";
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
    fmt::print("replay the first with {}\n", replay(request, outcome.seed));
  }
}

}  // namespace

int simulate(const Request& request) {
  const LibraryKernel& entry = find_kernel(request.kernel);
  // "sim:sm_90a" is the same as "sm_90a" here.
  const std::string name =
      request.target.rfind("sim:", 0) == 0 ? request.target.substr(4) : request.target;
  const driver::Target target = driver::parse_target(name);
  if (target.kind != driver::Target::Kind::architecture) {
    Diagnostic({}, fmt::format("target {} is not simulated", request.target))
        .fix("use --target sm_90a")
        .raise();
  }
  if (request.faults) return simulate_faults(request, entry, target);
  check_traces(request);
  driver::Workload workload = workload_of(request, entry);
  const Kernel kernel = driver::trace_entry(entry, workload.options, target);
  passes::Rewrites rewrites{driver::parse_numerics(request.numerics), {}};
  ir::Kernel machine = driver::lower(kernel.finish(), rewrites);
  driver::enforce_claims(machine, nullptr);
  std::optional<driver::Breakage> breakage;
  if (!request.breakage.empty()) breakage = driver::break_kernel(machine, request.breakage);
  const Outcome outcome = execute(request, machine, workload);
  if (outcome.trace) write_traces(request, outcome, machine.name, target.name);

  const double tolerance = entry.tolerance(workload.options);
  const bool ok = outcome.ok(tolerance);
  if (request.json) {
    Json faults = Json::array();
    for (const simulator::Fault& fault : outcome.faults) faults.push_back(json_of(fault));
    Json json = {{"ok", ok},
                 {"kernel", entry.name},
                 {"target", target.name},
                 {"schedules", request.schedules},
                 {"launches", request.launches},
                 {"operations", outcome.operations},
                 {"control_only", request.control_only},
                 {"faults", faults}};
    if (!request.control_only) {
      json["max_relative_error"] = outcome.comparison.max_relative_error;
      json["tolerance"] = tolerance;
    }
    if (!outcome.faults.empty()) json["replay"] = replay(request, outcome.seed);
    fmt::print("{}\n", json.dump(2));
    return ok ? 0 : static_cast<int>(ErrorKind::result);
  }
  if (breakage) {
    fmt::print("{} is broken at {}: {}\n", entry.name, format_location(breakage->where),
               breakage->what);
  }
  print_faults(request, outcome);
  fmt::print("{} on simulated {}: {} schedules, {} operations, {} faults\n", entry.name,
             target.name, request.schedules, outcome.operations, outcome.faults.size());
  if (outcome.faults.empty() && request.control_only) {
    fmt::print("control alone: results were not computed\n");
  } else if (outcome.faults.empty()) {
    fmt::print("max relative error {:.3g}, tolerance {:.3g}: {}\n",
               outcome.comparison.max_relative_error, tolerance, ok ? "ok" : "too large");
    if (!ok) fmt::print("{}\n", outcome.comparison.worst);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
