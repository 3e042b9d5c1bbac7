#include "simulation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "accuracy_report.h"
#include "compiler/simulation.h"
#include "explain/report/trace_json.h"
#include "explain/report/trace_page.h"
#include "json_text.h"
#include "library/program_simulation.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const simulator::Fault& fault) {
  return {{"kind", fault.kind},
          {"first", format_location(fault.first)},
          {"second", format_location(fault.second)},
          {"missing", fault.missing},
          {"message", fault.message}};
}

bool is_page(const std::string& file) { return file.ends_with(".html"); }

// "--seed 3 --input-seed 0": what makes the schedule again.
std::string replay(const Request& request, std::uint64_t seed) {
  const std::uint64_t inputs = request.input_seed.value_or(request.seed);
  return (request.search == "random" ? "" : fmt::format("--search {} ", request.search)) +
         fmt::format("--seed {}", seed) +
         (inputs == seed ? "" : fmt::format(" --input-seed {}", inputs));
}

void print_faults(const Request& request, const Outcome& outcome) {
  for (const simulator::Fault& fault : outcome.faults) {
    fmt::print("{}\n", compiler::diagnostic_of(fault).render());
  }
  if (!outcome.faults.empty()) {
    fmt::print("replay the first with {}{}\n", replay(request, outcome.seed),
               outcome.sizes.empty() ? "" : fmt::format(", of {}", outcome.sizes));
  }
}

std::string schedules_of(const Case& each) {
  const std::string without = each.without_values ? " without values" : "";
  if (each.one_for_all) return fmt::format("1 schedule{}, which stands for all,", without);
  if (each.possible == 0) return counted(each.schedules, "schedule") + without;
  if (each.schedules >= each.possible) {
    return fmt::format("all {} with at most two delays", counted(each.possible, "schedule"));
  }
  return fmt::format("{} of {} with at most two delays", each.schedules,
                     counted(each.possible, "schedule"));
}

std::int64_t schedules_of_each_form(const Outcome& outcome, const Title& title) {
  const auto forms = static_cast<std::int64_t>(title.forms);
  return (outcome.schedules() + forms - 1) / forms;
}

// "20 schedules of 2 launches", "20 schedules of 2 runs of 5 launches".
std::string extent(const std::string& schedules, const Title& title) {
  if (title.ranks == 0) {
    return title.launches > 1
               ? fmt::format("{} of {}", schedules, counted(title.launches, "launch"))
               : schedules;
  }
  return fmt::format("{} of {} of {}", schedules, counted(title.runs, "run"),
                     counted(title.launches, "launch"));
}

// "..39998": of each part of the time the share of it, in tenths.
std::string over_time(const simulator::UnitUse& unit, std::int64_t cycles) {
  std::string text;
  for (const std::int64_t busy : unit.over_time) {
    const auto parts = static_cast<std::int64_t>(unit.over_time.size());
    const double share = static_cast<double>(busy * parts) /
                         static_cast<double>(std::max<std::int64_t>(1, cycles * unit.instances));
    const int tenths = std::min(9, static_cast<int>(share * 10));
    text += busy == 0 ? '.' : static_cast<char>('0' + tenths);
  }
  return text;
}

double share_of(const simulator::UnitUse& unit, std::int64_t cycles) {
  return static_cast<double>(unit.busy) /
         static_cast<double>(std::max<std::int64_t>(1, cycles * unit.instances));
}

void print_units(const Outcome& outcome) {
  if (outcome.units.empty()) return;
  fmt::print("  {} cycles of modelled time; how busy each unit is, and over time in tenths\n",
             outcome.cycles);
  for (const simulator::UnitUse& unit : outcome.units) {
    fmt::print("  {:<8} {:>8} {:>5.1f}%  {}", unit.name, unit.instructions,
               100 * share_of(unit, outcome.cycles), over_time(unit, outcome.cycles));
    if (unit.short_moves > 0) fmt::print("  {} are short", unit.short_moves);
    if (unit.conflicts > 0) {
      fmt::print("  {:.1f}% of it for banks",
                 100 * static_cast<double>(unit.conflicts) / static_cast<double>(unit.busy));
    }
    fmt::print("\n");
  }
}

void print_results(const Request& request, const Outcome& outcome, const Title& title) {
  if (request.control_only) {
    fmt::print("control alone: results were not computed\n");
    return;
  }
  const Case& worst = outcome.worst();
  if (title.ranks > 0 && !title.against_reference) {
    const bool same = worst.comparison.outputs.empty();
    fmt::print("the schedules' results: {}\n",
               same ? "the same bits" : "beside those of the first one");
  }
  print_comparison(worst.comparison);
}

// To the files of --trace.
void write_traces(const Request& request, const Outcome& outcome, const Title& title) {
  if (!outcome.trace) return;
  explanations::TraceOrigin origin{
      title.kernel, title.target, outcome.seed,
      fmt::format("tilewright simulate {} --target {}", request.kernel, request.target)};
  if (request.ranks) origin.command += fmt::format(" --ranks {}", *request.ranks);
  if (request.launches) origin.command += fmt::format(" --launches {}", *request.launches);
  if (request.multiprocessors) {
    origin.command += fmt::format(" --multiprocessors {}", *request.multiprocessors);
  }
  for (const std::string& setting : request.settings) origin.command += " --set " + setting;
  for (const std::string& switched : request.numerics) origin.command += " --numerics " + switched;
  for (const auto& [flag, given] :
       {std::pair(" --control-only", request.control_only),
        std::pair(" --shrunken", request.shrunken), std::pair(" --strict", request.strict),
        std::pair(" --issue-order", request.issue_order),
        std::pair(" --provenance", request.provenance)}) {
    if (given) origin.command += flag;
  }
  if (!request.breakage.empty()) origin.command += " --break " + request.breakage;
  origin.command += " " + replay(request, outcome.seed);
  for (const std::string& file : request.traces) {
    write_text(file, is_page(file) ? explanations::trace_page(*outcome.trace, origin)
                                   : explanations::trace_events(*outcome.trace, origin));
  }
}

void print_outcome(const Request& request, const Outcome& outcome, const Title& title) {
  print_faults(request, outcome);
  for (const Case& each : outcome.cases) {
    if (request.shrunken) fmt::print("  {}: {}\n", each.sizes, schedules_of(each));
  }
  const std::string schedules = outcome.cases.size() == title.forms
                                    ? schedules_of(outcome.cases.front())
                                    : counted(schedules_of_each_form(outcome, title), "schedule");
  const std::string name = title.ranks == 0
                               ? title.name
                               : fmt::format("{}, {},", title.name, ir::ranks_text(title.ranks));
  fmt::print("{} on simulated {}: {}, {}, {}\n", name, title.target, extent(schedules, title),
             counted(outcome.operations, "operation"), counted(outcome.faults.size(), "fault"));
  if (title.forms > 1) {
    fmt::print("  of each of {} machine forms: an assembler settles which one ships\n",
               title.forms);
  }
  if (!outcome.faults.empty()) return;
  print_units(outcome);
  print_results(request, outcome, title);
}

void print_breakage(const Title& title, const checks::Breakage& breakage) {
  fmt::print("{} is broken at {}: {}\n", title.name, format_location(breakage.where),
             breakage.what);
}

void print_json(const Request& request, const Outcome& outcome, const Title& title) {
  Json faults = Json::array(), cases = Json::array();
  for (const simulator::Fault& fault : outcome.faults) faults.push_back(json_of(fault));
  for (const Case& each : outcome.cases) {
    Json json = {
        {"sizes", each.sizes}, {"schedules", each.schedules}, {"operations", each.operations}};
    if (each.possible > 0) json["possible"] = each.possible;
    if (each.one_for_all) json["one_for_all"] = true;
    if (each.without_values) json["without_values"] = true;
    cases.push_back(std::move(json));
  }
  Json json = {{"ok", outcome.ok()},
               {title.ranks == 0 ? "kernel" : "program", title.name},
               {"target", title.target},
               {"search", request.search},
               {"schedules", schedules_of_each_form(outcome, title)},
               {"launches", title.launches},
               {"forms", title.forms},
               {"operations", outcome.operations},
               {"control_only", request.control_only},
               {"strict", request.strict},
               {"issue_order", request.issue_order},
               {"faults", faults}};
  if (title.ranks > 0) {
    json["ranks"] = title.ranks;
    json["runs"] = title.runs;
  }
  if (request.shrunken || request.search == "delays" || request.one_for_all) json["cases"] = cases;
  if (!request.control_only) {
    json["outputs"] = tools::json_of(outcome.worst().comparison);
    if (title.ranks == 0 || title.against_reference) json["weak"] = title.weak;
  }
  if (!outcome.units.empty()) {
    Json units = Json::array();
    for (const simulator::UnitUse& unit : outcome.units) {
      units.push_back({{"name", unit.name},
                       {"instances", unit.instances},
                       {"instructions", unit.instructions},
                       {"busy", unit.busy},
                       {"bank_conflicts", unit.conflicts},
                       {"short_moves", unit.short_moves},
                       {"over_time", unit.over_time}});
    }
    json["units"] = std::move(units);
    json["cycles"] = outcome.cycles;
  }
  if (!outcome.faults.empty()) json["replay"] = replay(request, outcome.seed);
  fmt::print("{}\n", json_text(json));
}

}  // namespace

void check_traces(const Request& request) {
  for (const std::string& file : request.traces) {
    if (is_page(file) || file.ends_with(".json")) continue;
    Diagnostic({}, fmt::format("--trace {}: neither .html nor .json", file))
        .fix("FILE.html is a page for a browser, FILE.json a trace for Perfetto")
        .raise();
  }
}

int report(const Request& request, const Outcome& outcome, const Title& title,
           const std::optional<checks::Breakage>& breakage) {
  write_traces(request, outcome, title);
  if (request.json) {
    print_json(request, outcome, title);
  } else {
    if (breakage) print_breakage(title, *breakage);
    print_outcome(request, outcome, title);
    warn_of(title.weak);
  }
  return outcome.ok() ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
