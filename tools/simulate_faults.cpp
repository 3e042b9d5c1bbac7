#include "simulate_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "driver/build.h"
#include "driver/claims.h"
#include "driver/fault_proof.h"
#include "driver/program_proof.h"
#include "driver/rewrites.h"
#include "driver/shrunken_sizes.h"
#include "fault_table.h"
#include "support/diagnostic.h"
#include "support/progress.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;
using driver::MutantResult;

// A word that stays as it is shows in the third run, where the one after waits for it.
constexpr std::int64_t kProofRuns = 3;

driver::ProofOptions proof_options(const Request& request) {
  driver::ProofOptions options;
  options.seed = request.seed;
  options.schedules = std::max(options.schedules, request.schedules);
  options.more = std::max(options.more, options.schedules);
  options.launches = std::max(options.launches, request.launches.value_or(1));
  options.threads = static_cast<unsigned>(request.threads);
  return options;
}

bool is_length(const LibraryKernel& entry, const std::string& setting) {
  const std::string name = setting.substr(0, setting.find('='));
  return std::any_of(entry.options.begin(), entry.options.end(), [&](const KernelOption& option) {
    return option.name == name && option.is_length;
  });
}

}  // namespace

Subject subject_of(const Request& request, const driver::KernelSource& source,
                   const driver::Target& target) {
  const LibraryKernel& entry = source.entry();
  passes::Rewrites rewrites{driver::parse_numerics(request.numerics), {}};
  const auto build = [&](const std::vector<std::string>& settings) {
    const OptionValues options = resolve_options(entry, settings);
    return driver::lower(source.traced(options, target), rewrites);
  };
  Subject subject;
  std::vector<std::string> built = request.settings;
  subject.machine = build(built);
  std::vector<std::vector<std::string>> choices = driver::shrunken_sizes(
      entry, request.settings, resolve_options(entry, request.settings), subject.machine);
  // Lengths choose among a kernel's variants, and it is the one that was asked for that is proven.
  for (const std::string& size : choices.front()) {
    if (!is_length(entry, size)) built.push_back(size);
  }
  if (built.size() > request.settings.size()) subject.machine = build(built);
  driver::enforce_claims(subject.machine, nullptr);
  subject.usual = choices.size();
  if (request.faults) {
    for (std::vector<std::string>& sizes :
         driver::shrunken_sizes(entry, request.settings, resolve_options(entry, request.settings),
                                subject.machine, true)) {
      choices.push_back(std::move(sizes));
    }
  }
  for (const std::vector<std::string>& sizes : choices) {
    std::vector<std::string> all = request.settings;
    all.insert(all.end(), sizes.begin(), sizes.end());
    subject.workloads.push_back(driver::make_workload(entry, all,
                                                      parse_files(request.inputs, "--in"),
                                                      request.input_seed.value_or(request.seed)));
    subject.sizes.push_back(fmt::format("{}", fmt::join(sizes, " ")));
  }
  return subject;
}

int simulate_faults(const Request& request, const driver::KernelSource& source,
                    const driver::Target& target) {
  const Subject subject = subject_of(request, source, target);
  driver::ProofOptions options = proof_options(request);
  options.usual = subject.usual;
  std::unique_ptr<ProgressBar> progress;
  const std::vector<MutantResult> results = driver::prove_by_faults(
      subject.machine, subject.workloads, options,
      [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
      [&] { progress->advance(); });
  progress.reset();

  Kinds kinds;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) kinds.push_back(&kind);
  const bool ok = is_proven(results);
  if (request.json) {
    Json json = {{"ok", ok},
                 {"kernel", subject.machine.name},
                 {"target", target.name},
                 {"sizes", subject.sizes},
                 {"schedules", options.more},
                 {"launches", options.launches}};
    json.update(table_json(kinds, results, subject.sizes));
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{} on simulated {}: {} mutants, each under up to {} schedules of {} launches\n",
               subject.machine.name, target.name, results.size(), options.more, options.launches);
    for (std::size_t i = 0; i < subject.sizes.size(); ++i) {
      if (subject.sizes[i].empty()) continue;
      fmt::print("  shrunken sizes ({}): {}\n",
                 i < subject.usual ? "stages + 1 steps, tails" : "for what these do not come to",
                 subject.sizes[i]);
    }
    print_table(kinds, results);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

int simulate_program_faults(const Request& request, const ir::Program& program,
                            const std::vector<ir::Kernel>& machine,
                            const simulator::MachineOptions& how, const Title& title) {
  driver::ProofOptions options = proof_options(request);
  options.launches = std::max(kProofRuns, title.runs);
  std::unique_ptr<ProgressBar> progress;
  const std::vector<MutantResult> results = driver::prove_program(
      program, machine, how, options,
      [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
      [&] { progress->advance(); });
  progress.reset();
  const bool ok = is_proven(results);
  if (request.json) {
    Json json = {{"ok", ok},
                 {"program", title.name},
                 {"target", title.target},
                 {"ranks", title.ranks},
                 {"schedules", options.more},
                 {"runs", options.launches},
                 {"launches", title.launches}};
    json.update(table_json(driver::proof_kinds(), results, {}));
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}, {}, on simulated {}: {} mutants, each under up to {} schedules of {} runs\n",
               title.name, ir::ranks_text(title.ranks), title.target, results.size(), options.more,
               options.launches);
    print_table(driver::proof_kinds(), results);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
