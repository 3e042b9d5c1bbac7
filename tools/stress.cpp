#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "check/fault_proof.h"
#include "check/stress.h"
#include "command.h"
#include "compiler/target.h"
#include "library/kernel_source.h"
#include "simulate_faults.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Listed {
  const simulator::FaultKind* kind = nullptr;
  simulator::Mutant mutant;
};

std::vector<Listed> all_mutants(const ir::Kernel& machine) {
  std::vector<Listed> all;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      all.push_back({&kind, std::move(mutant)});
    }
  }
  return all;
}

Json json_of(const Listed& listed) {
  return {{"kind", listed.kind->number},
          {"name", listed.kind->name},
          {"where", format_location(listed.mutant.where)},
          {"operation", listed.mutant.operation},
          {"change", listed.mutant.change},
          {"equivalent", listed.mutant.equivalent}};
}

// All workloads have shrunken lengths; one more has those that the kernel has by default.
void add_default_lengths(const Request& request, const LibraryKernel& entry, Subject& subject) {
  std::vector<std::string> settings = request.settings;
  bool is_other = false;
  std::istringstream words(subject.sizes.front());
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find('='));
    const bool is_length = std::any_of(
        entry.options.begin(), entry.options.end(),
        [&](const KernelOption& option) { return option.name == name && option.is_length; });
    is_other = is_other || is_length;
    if (!is_length) settings.push_back(word);
  }
  if (!is_other) return;
  subject.workloads.push_back(library::make_workload(entry, settings, {}, request.seed));
  subject.sizes.push_back("default lengths");
}

// Leaves out what takes seconds to simulate, such as whole blocks for each CTA of a large cluster.
void drop_large(const LibraryKernel& entry, Subject& subject) {
  constexpr double kMostOperations = 7e8;
  for (std::size_t i = subject.workloads.size(); i-- > 0 && subject.workloads.size() > 1;) {
    const library::Workload& workload = subject.workloads[i];
    const double operations = entry.floating_operations(workload.options, workload.inputs());
    if (operations <= kMostOperations) continue;
    subject.workloads.erase(subject.workloads.begin() + static_cast<std::ptrdiff_t>(i));
    subject.sizes.erase(subject.sizes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void add_gpu(Json& json, const checks::StressReport& report, bool hangs, bool delayed) {
  json["gpu"] = {{"plain_runs", report.plain_runs},
                 {"delayed_runs", report.delayed_runs},
                 {"hangs", hangs ? 1 : 0},
                 {"plain_mismatches", report.plain_mismatches},
                 {"delayed_mismatches", report.delayed_mismatches},
                 {"first_mismatch", report.first_mismatch},
                 {"error", report.error}};
  if (hangs) json["gpu"]["hung"] = delayed ? "with delays" : "without delays";
}

// What the simulated GPU finds: empty where nothing.
std::string simulate_kind(const ir::Kernel& machine, Subject& subject,
                          const checks::StressOptions& options) {
  try {
    return checks::simulate_workloads(machine, subject.workloads, options).kind;
  } catch (const Error& error) {
    return "refused: " + error.message();
  }
}

int print(const Request& request, const Json& json) {
  const bool ok = json["ok"];
  if (request.json) {
    fmt::print("{}\n", json.dump(2));
    return ok ? 0 : static_cast<int>(ErrorKind::result);
  }
  if (json.contains("rejected")) {
    fmt::print("rejected by the verifier: {}\n", std::string(json["rejected"]));
    return static_cast<int>(ErrorKind::result);
  }
  if (json.contains("mutant")) {
    fmt::print("{} with fault {}: {} {}\n", std::string(json["kernel"]),
               int(json["mutant"]["kind"]), std::string(json["mutant"]["operation"]),
               std::string(json["mutant"]["change"]));
  }
  const std::string simulator = json.value("simulator", "");
  fmt::print("{} on simulated sm_90a: {}\n", std::string(json["kernel"]),
             !json.contains("simulator") ? "left out"
             : simulator.empty()         ? "clean"
                                         : simulator);
  if (json.contains("gpu")) {
    const Json& gpu = json["gpu"];
    const int mismatches = int(gpu["plain_mismatches"]) + int(gpu["delayed_mismatches"]);
    fmt::print("{} with injected delays, {} without: {}, {}{}{}\n",
               counted(int(gpu["delayed_runs"]), "run"), int(gpu["plain_runs"]),
               counted(int(gpu["hangs"]), "hang"), counted(mismatches, "mismatch"),
               std::string(gpu["error"]).empty() ? "" : ", ended by: ", std::string(gpu["error"]));
    if (!std::string(gpu["first_mismatch"]).empty()) {
      fmt::print("first mismatch: {}\n", std::string(gpu["first_mismatch"]));
    }
  } else if (json.contains("assembled")) {
    fmt::print("assembled with injected delays and without; not run: no GPU was asked for\n");
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

int print_mutants(const std::vector<Listed>& mutants) {
  Json list = Json::array();
  for (const Listed& listed : mutants) list.push_back(json_of(listed));
  fmt::print("{}\n", list.dump(2));
  return 0;
}

void check_target(const Request& request, const compiler::Target& target) {
  if (target.kind == compiler::Target::Kind::cuda ||
      target.kind == compiler::Target::Kind::architecture) {
    return;
  }
  Diagnostic({}, fmt::format("target {} has no timing to disturb", request.target))
      .fix("use --target cuda, or sm_90a to simulate and assemble only")
      .raise();
}

void check_alone(const Request& request, const library::KernelSource& source) {
  if (!source.reaches_ranks()) return;
  Diagnostic({}, fmt::format("{} reaches other ranks, and stress runs a kernel alone",
                             source.entry().name))
      .fix(fmt::format("tilewright simulate {} --target sm_90a", request.kernel))
      .raise();
}

void check_mutant(const Request& request, const LibraryKernel& entry, std::size_t mutants) {
  if (!request.mutant || *request.mutant < mutants) return;
  Diagnostic({}, fmt::format("--mutant {}: {} has {}", *request.mutant, entry.name,
                             counted(mutants, "mutant")))
      .fix("see --list-mutants")
      .raise();
}

checks::StressOptions stress_options_of(const Request& request) {
  checks::StressOptions options;
  options.seed = request.seed;
  options.schedules = request.schedules;
  options.runs = request.runs;
  options.patience = std::chrono::milliseconds(static_cast<std::int64_t>(request.patience * 1e3));
  return options;
}

// Runs the kernel with delays on the GPU, or assembles it for one; whether nothing was found.
bool run_with_delays(const Request& request, const compiler::Target& target, Subject& subject,
                     const ir::Kernel& machine, const checks::StressOptions& options, Json& json) {
  const auto hangs = [&](const checks::StressReport& found, bool delayed) {
    add_gpu(json, found, true, delayed);
    print(request, json);
    std::fflush(stdout);
    // No destructor returns while the GPU is at it.
    _exit(static_cast<int>(ErrorKind::result));
  };
  checks::StressReport report;
  try {
    if (target.kind != compiler::Target::Kind::cuda) {
      checks::assemble_with_delays(machine, target.arch, options.seed);
      json["assembled"] = true;
      return true;
    }
    report =
        checks::stress_on_gpu(subject.forms.front(), machine, subject.workloads, options, hangs);
  } catch (const Error& error) {
    if (!request.mutant) throw;
    // What the assembler refuses of a fault, it has noticed.
    report.error = error.message();
  }
  add_gpu(json, report, false, false);
  return report.ok();
}

}  // namespace

int stress(const Request& request) {
  const library::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  const compiler::Target target = compiler::parse_target(request.target);
  const bool is_gpu = target.kind == compiler::Target::Kind::cuda;
  check_target(request, target);
  check_alone(request, source);
  check_numerics(request, source);
  Subject subject = subject_of(request, source, target);
  add_default_lengths(request, entry, subject);
  drop_large(entry, subject);
  std::vector<Listed> mutants;
  if (request.list_mutants || request.mutant) mutants = all_mutants(subject.forms.front());
  if (request.list_mutants) return print_mutants(mutants);
  check_mutant(request, entry, mutants.size());
  const checks::StressOptions options = stress_options_of(request);

  Json json = {{"ok", false},
               {"kernel", entry.name},
               {"target", target.name},
               {"settings", request.settings},
               {"sizes", subject.sizes}};
  ir::Kernel machine = subject.forms.front();
  if (request.mutant) {
    const Listed& listed = mutants[*request.mutant];
    json["mutant"] = json_of(listed);
    machine = listed.mutant.apply(subject.forms.front());
    if (const std::string why = checks::why_not_well_formed(machine); !why.empty()) {
      json["rejected"] = why;
      return print(request, json);
    }
  }
  bool ok = true;
  if (!request.no_simulation) {
    const std::string kind = simulate_kind(machine, subject, options);
    json["simulator"] = kind;
    ok = kind.empty();
  }
  // A kernel that the simulator finds at fault is run only to see what the hardware notices.
  if (!is_gpu || ok || request.mutant) {
    ok = run_with_delays(request, target, subject, machine, options, json) && ok;
  }
  json["ok"] = ok;
  return print(request, json);
}

}  // namespace tilewright::tools
