#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "check/fuzz/campaign.h"
#include "check/fuzz/faults.h"
#include "check/printed_faults.h"
#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/progress.h"
#include "tilewright/library.h"

namespace tilewright::tools {
namespace {

namespace fuzz = checks::fuzz;
using Json = nlohmann::ordered_json;

std::string target_name(const Request& request) {
  return request.target.empty() ? fuzz::CampaignOptions{}.machine : request.target;
}

void set_target(fuzz::CampaignOptions& options, const std::string& name) {
  const compiler::Target target = compiler::parse_target(name);
  if (!target.arch.empty()) options.machine = target.arch;
  switch (target.kind) {
    case compiler::Target::Kind::interpreter:
      options.target = fuzz::Target::interpreter;
      return;
    case compiler::Target::Kind::simulator:
    case compiler::Target::Kind::architecture:
      options.target = fuzz::Target::simulator;
      return;
    case compiler::Target::Kind::cuda:
      options.target = fuzz::Target::cuda;
      return;
    case compiler::Target::Kind::cpu:
      options.target = fuzz::Target::cpu;
      return;
    case compiler::Target::Kind::passes:
      break;
  }
  Diagnostic({}, "target " + name + " is not compared by fuzz")
      .fix("use interpreter, cpu, cuda or " + options.machine)
      .raise();
}

std::string kind_name(fuzz::Verdict::Kind kind) {
  switch (kind) {
    case fuzz::Verdict::Kind::mismatch:
      return "mismatch";
    case fuzz::Verdict::Kind::fault:
      return "fault";
    default:
      return "internal error";
  }
}

// How the explicit level computes it; empty of others.
std::string plan_of(const fuzz::Recipe& recipe) {
  if (recipe.style != fuzz::Recipe::Style::explicit_level) return "";
  const fuzz::ExplicitPlan& plan = recipe.plan;
  return fmt::format(
      "stages {}, warpgroups {}, cluster {}, multicast {}, persistent {}, a in registers {}, b by "
      "rows {}, wide stages {}, halves {}",
      plan.stages, plan.warpgroups, plan.cluster, plan.multicast, plan.persistent,
      plan.a_in_registers, plan.b_by_rows, plan.wide_stages, plan.halves);
}

Json json_of(const fuzz::Failure& failure) {
  const fuzz::Sizes& sizes = failure.recipe.sizes;
  return {{"seed", failure.seed},
          {"kind", kind_name(failure.verdict.kind)},
          {"stage", failure.verdict.stage},
          {"text", failure.shrunken.text},
          {"steps", fuzz::steps_of(failure.recipe)},
          {"sizes", {{"m", sizes.rows}, {"n", sizes.columns}, {"k", sizes.depth}}},
          {"explicit_plan", plan_of(failure.recipe)},
          {"kernel", fuzz::text_of(failure.recipe)}};
}

void print(const fuzz::Failure& failure, const std::string& target, bool shrunken) {
  fmt::print("seed {}: {}, {}: {}\n", failure.seed, kind_name(failure.verdict.kind),
             failure.verdict.stage, failure.verdict.text);
  const fuzz::Sizes& sizes = failure.recipe.sizes;
  fmt::print("{}{} steps, with m = {}, n = {}, k = {}: {}\n", shrunken ? "shrunken to " : "",
             fuzz::steps_of(failure.recipe), sizes.rows, sizes.columns, sizes.depth,
             failure.shrunken.text);
  const std::string plan = plan_of(failure.recipe);
  if (!plan.empty()) fmt::print("at the explicit level: {}\n", plan);
  fmt::print("{}  replay: tilewright fuzz --target {} --count 1 --seed {}\n\n",
             fuzz::text_of(failure.recipe), target, failure.seed);
}

int seeded_faults(const Request& request) {
  fuzz::CampaignOptions options;
  set_target(options, target_name(request));
  const std::vector<fuzz::TimeToKill> found =
      fuzz::time_to_kill(request.seed, request.count, options.machine);
  Json list = Json::array();
  std::size_t killed = 0;
  for (const fuzz::TimeToKill& f : found) {
    killed += f.killed;
    list.push_back({{"name", f.fault->name},
                    {"killed", f.killed},
                    {"kernels", f.kernels},
                    {"planted", f.planted},
                    {"seed", f.seed},
                    {"seconds", f.seconds},
                    {"how", f.how}});
    if (request.json) continue;
    fmt::print("{:<22} {:>5} {:>5} kernels ({} with a place), {:.2f} s  {}\n", f.fault->name,
               f.killed ? "found" : "MISSED", f.kernels, f.planted, f.seconds,
               f.killed ? f.how : f.fault->description);
  }
  if (request.json) {
    fmt::print("{}\n", json_text(Json{{"ok", killed == found.size()}, {"faults", list}}));
  } else {
    fmt::print("{} of {} seeded faults found\n", killed, found.size());
  }
  return killed == found.size() ? 0 : static_cast<int>(ErrorKind::result);
}

// Of the printer, in its text.
int printed_faults(const Request& request) {
  std::vector<const checks::PrintedFault*> faults;
  for (const checks::PrintedFault& fault : checks::printed_faults()) faults.push_back(&fault);
  ProgressBar progress("faults", static_cast<std::int64_t>(faults.size()));
  const auto results = checks::prove_printer(checks::printed_subjects(request.count, find_kernel),
                                             12, faults, [&progress] { progress.advance(); });
  Json list = Json::array();
  std::size_t caught = 0, in_prelude = 0;
  for (const checks::PrintedFaultResult& result : results) {
    caught += result.caught;
    in_prelude += result.caught && result.fault->in_prelude;
    list.push_back({{"name", result.fault->name},
                    {"prelude", result.fault->in_prelude},
                    {"caught", result.caught},
                    {"subject", result.subject},
                    {"line", result.line},
                    {"subjects", result.subjects},
                    {"how", result.how}});
    if (request.json) continue;
    const std::string how = result.how.substr(0, result.how.find('\n'));
    fmt::print("{:<7} {:<36} {}:{}  {}\n", result.caught ? "found" : "MISSED", result.fault->name,
               result.subject, result.line, how);
  }
  const bool ok = caught == results.size();
  if (request.json) {
    fmt::print("{}\n", Json{{"ok", ok}, {"faults", list}}.dump(2));
  } else {
    fmt::print("{} of {} faults of the printer found, {} of them in the prelude\n", caught,
               results.size(), in_prelude);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

// The PTX of random kernels beside their machine forms.
int printed_kernels(const Request& request) {
  ProgressBar progress("kernels", request.count);
  std::int64_t compared = 0;
  Json failures = Json::array();
  for (std::int64_t i = 0; i < request.count; ++i, progress.advance()) {
    const std::uint64_t seed = request.seed + static_cast<std::uint64_t>(i);
    for (const checks::PrintedSubject& subject : checks::random_subjects(seed)) {
      ++compared;
      const std::string difference = checks::difference_of(subject);
      if (difference.empty()) continue;
      failures.push_back({{"seed", seed}, {"difference", difference}});
      if (!request.json) fmt::print("seed {}: {}\n", seed, difference);
    }
  }
  const bool ok = failures.empty();
  if (request.json) {
    const Json json = {
        {"ok", ok}, {"seed", request.seed}, {"compared", compared}, {"failures", failures}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{} machine forms of {} random kernels: the PTX of {} differs\n", compared,
               request.count, failures.size());
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace

int fuzz(const Request& request) {
  if (request.seeded_faults) {
    return request.printed ? printed_faults(request) : seeded_faults(request);
  }
  if (request.printed) return printed_kernels(request);
  fuzz::CampaignOptions options;
  options.seed = request.seed;
  options.count = request.count;
  set_target(options, target_name(request));
  options.threads = request.threads;
  options.first = request.first;
  ProgressBar progress("kernels", options.count);
  const fuzz::CampaignReport report =
      fuzz::run_campaign(options, [&progress] { progress.advance(); });
  const bool ok = report.failures.empty();
  std::int64_t refused = 0;
  for (const auto& [message, count] : report.refusals) refused += count;
  if (request.json) {
    Json failures = Json::array();
    for (const fuzz::Failure& failure : report.failures) failures.push_back(json_of(failure));
    const Json json = {{"ok", ok},
                       {"seed", options.seed},
                       {"kernels", report.kernels},
                       {"agreed", report.agreed},
                       {"styles", report.styles},
                       {"undecided", report.undecided},
                       {"refused", refused},
                       {"refusals", report.refusals},
                       {"elements", report.checked},
                       {"failures", failures},
                       {"seconds", report.seconds}};
    fmt::print("{}\n", json_text(json));
    return ok ? 0 : static_cast<int>(ErrorKind::result);
  }
  for (const fuzz::Failure& failure : report.failures) {
    print(failure, target_name(request), !request.first);
  }
  fmt::print("{} from seed {}: {} agreed", counted(report.kernels, "kernel"), options.seed,
             report.agreed);
  for (const auto& [style, count] : report.styles) fmt::print(", {} {}", count, style);
  fmt::print("; {} refused, {} undecided, {} failed; {} elements compared, {:.0f} s\n", refused,
             report.undecided, report.failures.size(), report.checked, report.seconds);
  std::vector<std::pair<std::int64_t, std::string>> refusals;
  for (const auto& [message, count] : report.refusals) refusals.emplace_back(count, message);
  std::sort(refusals.rbegin(), refusals.rend());
  for (const auto& [count, message] : refusals) fmt::print("{:>7} refused: {}\n", count, message);
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
