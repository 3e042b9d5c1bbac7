#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "accuracy_report.h"
#include "check/fault_proof.h"
#include "check/stress.h"
#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/kernel_source.h"
#include "operation.h"
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
  std::size_t kernel = 0;  // of the operation's
};

// What is stressed: the kernels of an operation of the library, one alone or a program's, and how
// they are run.
struct Stressed {
  std::vector<ir::Kernel> machine;
  std::vector<std::string> sizes;
  std::function<simulator::Fault(const std::vector<ir::Kernel>& machine,
                                 const checks::StressOptions&)>
      simulate;
  std::function<checks::StressReport(
      const std::vector<ir::Kernel>& machine, const checks::StressOptions&,
      const std::function<void(const checks::StressReport&, bool delayed)>& hung)>
      run;
};

std::vector<Listed> all_mutants(const std::vector<ir::Kernel>& machine) {
  std::vector<Listed> all;
  for (std::size_t i = 0; i < machine.size(); ++i) {
    for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
      for (simulator::Mutant& mutant : simulator::mutants_of(kind, machine[i])) {
        if (machine.size() > 1) mutant.operation += " of " + machine[i].name;
        all.push_back({&kind, std::move(mutant), i});
      }
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

// What is set and is no length; and whether lengths are set beside it.
struct BesideLengths {
  std::vector<std::string> settings;
  bool has_lengths = false;
};
BesideLengths beside_lengths(const Request& request, const LibraryKernel& entry,
                             const std::string& sizes) {
  BesideLengths beside{request.settings};
  std::istringstream words(sizes);
  for (std::string word; words >> word;) {
    if (is_length(entry, word)) {
      beside.has_lengths = true;
    } else {
      beside.settings.push_back(word);
    }
  }
  return beside;
}
constexpr const char* kDefaultLengths = "default lengths";

// All workloads have shrunken lengths; one more has those that the kernel has by default.
void add_default_lengths(const Request& request, const LibraryKernel& entry, Subject& subject) {
  const BesideLengths beside = beside_lengths(request, entry, subject.sizes.front());
  if (!beside.has_lengths) return;
  subject.workloads.push_back(library::make_workload(entry, beside.settings, {}, request.seed));
  subject.sizes.emplace_back(kDefaultLengths);
}

// What takes seconds to simulate, such as whole blocks for each CTA of a large cluster.
bool is_large(const library::Workload& workload) {
  constexpr double kMostOperations = 7e8;
  return workload.kernel->floating_operations(workload.options, workload.inputs()) >
         kMostOperations;
}

// Leaves that out, while anything is left.
template <typename Cases, typename IsLarge>
void drop_large(Cases& cases, std::vector<std::string>& sizes, const IsLarge& is_large_case) {
  for (std::size_t i = cases.size(); i-- > 0 && cases.size() > 1;) {
    if (!is_large_case(cases[i])) continue;
    cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(i));
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Stressed stressed_kernel(const Request& request, const library::KernelSource& source,
                         const compiler::Target& target) {
  const auto subject = std::make_shared<Subject>(subject_of(request, source, target));
  add_default_lengths(request, source.entry(), *subject);
  drop_large(subject->workloads, subject->sizes, is_large);
  Stressed made;
  made.machine = {subject->forms.front()};
  made.sizes = subject->sizes;
  made.simulate = [subject](const std::vector<ir::Kernel>& machine,
                            const checks::StressOptions& options) {
    return checks::simulate_workloads(machine.front(), subject->workloads, options);
  };
  made.run = [subject](const std::vector<ir::Kernel>& machine, const checks::StressOptions& options,
                       const auto& hung) {
    return checks::stress_on_gpu(subject->forms.front(), machine.front(), subject->workloads,
                                 options, hung);
  };
  return made;
}

Stressed stressed_program(const Request& request, const library::KernelSource& source,
                          const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  Operation operation = operation_of(request, source, target, OperationSizes::shrunken);
  const auto programs = std::make_shared<std::vector<checks::StressedProgram>>();
  Stressed made;
  const auto add = [&](const OperationCut& cut, std::string sizes) {
    programs->push_back({cut.made, cut.options.multiprocessors});
    made.sizes.push_back(std::move(sizes));
  };
  const std::string shrunken = operation.cuts.front().sizes;
  for (OperationCut& cut : operation.cuts) add(cut, cut.sizes);
  const BesideLengths beside =
      beside_lengths(request, entry, shrunken.substr(0, shrunken.find(',')));
  if (beside.has_lengths) {
    Request usual = request;
    usual.settings = beside.settings;
    add(operation_cut(usual, entry, operation.recorded, {},
                      program_machine_options(request).multiprocessors),
        kDefaultLengths);
  }
  drop_large(*programs, made.sizes,
             [](const checks::StressedProgram& each) { return is_large(each.made.workload); });
  made.machine = operation.forms.front();
  made.simulate = [programs](const std::vector<ir::Kernel>& machine,
                             const checks::StressOptions& options) {
    return checks::simulate_programs(machine, *programs, options);
  };
  made.run = [programs, recorded = operation.recorded, original = made.machine](
                 const std::vector<ir::Kernel>& machine, const checks::StressOptions& options,
                 const auto& hung) {
    return checks::stress_on_gpu(recorded, original, machine, *programs, options, hung);
  };
  return made;
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

// Whether the simulated GPU finds nothing.
bool is_clean_simulated(const Stressed& stressed, const std::vector<ir::Kernel>& machine,
                        const checks::StressOptions& options, Json& json) {
  simulator::Fault fault;
  try {
    fault = stressed.simulate(machine, options);
  } catch (const Error& error) {
    fault.kind = "refused: " + error.message();
  }
  json["simulator"] = fault.kind;
  if (!fault.message.empty()) json["fault"] = fault.message;
  return fault.kind.empty();
}

int print(const Request& request, const Json& json) {
  const bool ok = json["ok"];
  if (request.json) {
    fmt::print("{}\n", json_text(json));
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
                                         : json.value("fault", simulator));
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
  warn_of(json.value("weak", std::vector<std::string>()),
          "tilewright simulate takes what inputs hold, such as --in X=uniform:0:8");
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

int print_mutants(const std::vector<Listed>& mutants) {
  Json list = Json::array();
  for (const Listed& listed : mutants) list.push_back(json_of(listed));
  fmt::print("{}\n", json_text(list));
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
  if (!source.reaches_ranks() && !source.entry().over_ranks) return;
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

// Runs it with delays on the GPU, or assembles it for one; whether nothing was found.
bool run_with_delays(const Request& request, const compiler::Target& target,
                     const Stressed& stressed, const std::vector<ir::Kernel>& machine,
                     const checks::StressOptions& options, Json& json) {
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
      for (const ir::Kernel& each : machine) {
        checks::assemble_with_delays(each, target.arch, options.seed);
      }
      json["assembled"] = true;
      return true;
    }
    report = stressed.run(machine, options, hangs);
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
  const Stressed stressed = entry.is_program() ? stressed_program(request, source, target)
                                               : stressed_kernel(request, source, target);
  std::vector<Listed> mutants;
  if (request.list_mutants || request.mutant) mutants = all_mutants(stressed.machine);
  if (request.list_mutants) return print_mutants(mutants);
  check_mutant(request, entry, mutants.size());
  checks::StressOptions options = stress_options_of(request);
  WeakData weak;
  options.told = [&](const auto& workload, const auto& reference) {
    weak.add(workload, reference);
  };

  Json json = {{"ok", false},
               {"kernel", entry.name},
               {"target", target.name},
               {"settings", request.settings},
               {"sizes", stressed.sizes}};
  std::vector<ir::Kernel> machine = stressed.machine;
  if (request.mutant) {
    const Listed& listed = mutants[*request.mutant];
    json["mutant"] = json_of(listed);
    machine[listed.kernel] = listed.mutant.apply(stressed.machine[listed.kernel]);
    if (const std::string why = checks::why_not_well_formed(machine[listed.kernel]); !why.empty()) {
      json["rejected"] = why;
      return print(request, json);
    }
  }
  bool ok = true;
  if (!request.no_simulation) {
    ok = is_clean_simulated(stressed, machine, options, json);
  }
  // A kernel that the simulator finds at fault is run only to see what the hardware notices.
  if (!is_gpu || ok || request.mutant) {
    ok = run_with_delays(request, target, stressed, machine, options, json) && ok;
  }
  json["ok"] = ok;
  json["weak"] = weak.texts();
  return print(request, json);
}

}  // namespace tilewright::tools
