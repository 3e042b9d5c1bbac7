#include "simulate_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>

#include "check/coverage.h"
#include "check/fault_proof.h"
#include "check/program_proof.h"
#include "check/shrunken_sizes.h"
#include "compiler/build.h"
#include "compiler/claims.h"
#include "compiler/rewrites.h"
#include "fault_table.h"
#include "json_text.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/progress.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;
using checks::MutantResult;

// A word that stays as it is shows in the third run, where the one after waits for it.
constexpr std::int64_t kProofRuns = 3;

// Sizes besides the usual ones; each costs a run of every mutant that has not shown. Operations of
// warps until they are chosen: a second or two.
constexpr std::size_t kMostSizes = 12;
constexpr std::int64_t kToLookAt = 16'000'000;

// "2/3" of --part: from number 1 on, of 3.
void set_part(const std::string& text, checks::ProofOptions& options) {
  std::size_t number = 0, count = 0;
  char slash = 0;
  std::istringstream words(text);
  words >> number >> slash >> count;
  if (!words || !words.eof() || slash != '/' || number < 1 || number > count) {
    Diagnostic({}, fmt::format("--part {}: not a part", text))
        .fix("--part 2/3 is the second of three parts")
        .raise();
  }
  options.part = number - 1;
  options.parts = count;
}

}  // namespace

checks::ProofOptions proof_options(const Request& request) {
  checks::ProofOptions options;
  options.seed = request.seed;
  options.schedules = std::max(options.schedules, request.schedules);
  options.more = request.more_schedules;
  options.launches = std::max(options.launches, request.launches.value_or(1));
  options.threads = static_cast<unsigned>(request.threads);
  set_part(request.part, options);
  return options;
}

std::optional<std::set<std::size_t>> wanted_mutants(const Request& request,
                                                    const std::vector<std::size_t>& counts,
                                                    std::size_t form) {
  if (request.mutants.empty()) return std::nullopt;
  const std::size_t all = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const std::size_t begin = std::accumulate(
      counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(form), std::size_t{0});
  std::set<std::size_t> wanted;
  for (const std::size_t number : request.mutants) {
    if (number >= all) {
      Diagnostic({}, fmt::format("--mutants {}: {} has {}", number, request.kernel,
                                 counted(static_cast<std::int64_t>(all), "mutant")))
          .fix("see --list-mutants")
          .raise();
    }
    if (number >= begin && number < begin + counts[form]) wanted.insert(number - begin);
  }
  return wanted;
}

int print_mutants(const std::vector<std::vector<MutantResult>>& of_forms,
                  const std::vector<std::vector<ir::Kernel>>& kernels) {
  Json list = Json::array();
  for (std::size_t form = 0; form < of_forms.size(); ++form) {
    std::vector<std::string> names;
    for (const ir::Kernel& kernel : kernels[form]) names.push_back(checks::form_of(kernel));
    for (const MutantResult& result : of_forms[form]) {
      list.push_back({{"number", list.size()},
                      {"kind", result.kind->number},
                      {"where", format_location(result.mutant.where)},
                      {"operation", result.mutant.operation},
                      {"change", result.mutant.change},
                      {"form", result.subject < names.size() ? names[result.subject] : ""}});
    }
  }
  fmt::print("{}\n", json_text(list));
  return 0;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

namespace {

std::vector<std::size_t> sizes_of(const std::vector<std::vector<MutantResult>>& of_forms) {
  std::vector<std::size_t> counts;
  for (const auto& results : of_forms) counts.push_back(results.size());
  return counts;
}

}  // namespace

bool is_length(const LibraryKernel& entry, const std::string& setting) {
  const std::string name = setting.substr(0, setting.find('='));
  return std::any_of(entry.options.begin(), entry.options.end(), [&](const KernelOption& option) {
    return option.name == name && option.is_length;
  });
}

Subject subject_of(const Request& request, const library::KernelSource& source,
                   const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  const auto build = [&](const std::vector<std::string>& settings) {
    const OptionValues options = resolve_options(entry, settings);
    const ir::Kernel traced = source.traced(options, target);
    const compiler::MachineOptions how = compilation_of(request);
    if (target.kind != compiler::Target::Kind::cuda) {
      return compiler::simulated_forms(traced, target.arch, how);
    }
    return std::vector<ir::Kernel>{
        compiler::choose_form(traced, target.arch, how).machine};  // which runs there
  };
  Subject subject;
  std::vector<std::string> built = request.settings;
  subject.forms = build(built);
  const auto shrunken = [&](checks::Sizes which) {
    return checks::shrunken_sizes(entry, request.settings, resolve_options(entry, request.settings),
                                  subject.forms.front(), which);
  };
  const std::vector<std::vector<std::string>> choices = shrunken(checks::Sizes::usual);
  // Lengths choose among a kernel's variants, and it is the one that was asked for that is proven.
  for (const std::string& size : choices.front()) {
    if (!is_length(entry, size)) built.push_back(size);
  }
  if (built.size() > request.settings.size()) subject.forms = build(built);
  const library::Drawn usual =
      request.control_only ? library::Drawn::zeros : library::Drawn::normal;
  const auto maker = [&](const std::vector<std::string>& sizes, library::Drawn drawn) {
    std::vector<std::string> all = request.settings;
    all.insert(all.end(), sizes.begin(), sizes.end());
    return [&entry, all, files = parse_files(request.inputs, "--in"),
            seed = request.input_seed.value_or(request.seed),
            drawn] { return library::make_workload(entry, all, files, seed, drawn); };
  };
  const ir::Kernel& machine = subject.forms.front();
  const std::int64_t few = checks::shrunken_multiprocessors(machine);
  const std::int64_t many = checks::shrunken_multiprocessors(machine, /*further=*/true);
  const auto note = [&](const std::vector<std::string>& sizes) {
    subject.sizes.push_back(fmt::format("{}", fmt::join(sizes, " ")));
  };
  if (request.faults && request.list_mutants) return subject;
  std::int64_t executed = 0;
  for (const std::vector<std::string>& sizes : choices) {
    note(sizes);
    subject.workloads.push_back(maker(sizes, usual)());
    subject.coverage.add(checks::coverage_of(machine, subject.workloads.back().arguments(), few,
                                             request.seed, executed));
  }
  subject.usual = choices.size();
  // Where what happens happens many times over, and at the edges of what decides; else what comes
  // to every operation.
  if (!request.faults && !request.shrunken && subject.coverage.missing(machine).empty()) {
    return subject;
  }
  std::vector<std::vector<std::string>> candidates;
  // CTAs share contractions that are long.
  if (request.faults || ir::is_cooperative(machine)) candidates = shrunken(checks::Sizes::further);
  for (auto& sizes : shrunken(checks::Sizes::candidates)) candidates.push_back(std::move(sizes));
  std::vector<std::function<library::Workload()>> makers;
  for (const std::vector<std::string>& sizes : candidates) {
    makers.push_back(maker(sizes, library::Drawn::zeros));
  }
  checks::Covering covering = checks::covering(machine, makers, many, request.seed, kToLookAt,
                                               subject.coverage, kMostSizes);
  for (const std::size_t i : covering.chosen) {
    note(candidates[i]);
    if (request.faults) {
      subject.further_runs[subject.further.size()] = covering.runs[i];
      subject.further.push_back(maker(candidates[i], usual));
    } else {
      subject.workloads.push_back(maker(candidates[i], usual)());
    }
  }
  for (std::size_t i = 0; i < covering.runs.size(); ++i) {
    subject.candidate_runs[i] = std::move(covering.runs[i]);
  }
  for (const std::vector<std::string>& sizes : candidates) {
    subject.candidates.push_back(maker(sizes, usual));
    subject.candidate_sizes.push_back(fmt::format("{}", fmt::join(sizes, " ")));
  }
  return subject;
}

void print_unreached(const Subject& subject) {
  for (const ir::Operation* operation : subject.coverage.missing(subject.forms.front())) {
    fmt::print("  no size comes to {} at {}\n", ir::info(operation->op).name,
               format_location(operation->where));
  }
  const std::vector<std::uint64_t>&phases = subject.coverage.phases,
        &wanted = subject.coverage.wanted;
  std::int64_t few = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) few += phases[i] < wanted[i];
  if (few > 0) {
    fmt::print("  {} of {} complete fewer phases than a missing arrival needs to show\n", few,
               counted(static_cast<std::int64_t>(phases.size()), "barrier"));
  }
}

namespace {

// Each operation of a line once: whether any of them is executed.
Json operations_json(const Subject& subject) {
  const ir::Kernel& machine = subject.forms.front();
  std::map<std::pair<std::string, std::string>, bool> reached;
  const std::vector<const ir::Operation*> missing = subject.coverage.missing(machine);
  std::size_t number = 0;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    if (!subject.coverage.executable[number++]) return;
    const bool is_missing = std::count(missing.begin(), missing.end(), &operation) != 0;
    reached[{std::string(ir::info(operation.op).name), format_location(operation.where)}] |=
        !is_missing;
  });
  Json list = Json::array();
  for (const auto& [operation, is_reached] : reached) {
    list.push_back(
        {{"operation", operation.first}, {"where", operation.second}, {"reached", is_reached}});
  }
  return list;
}

}  // namespace

int simulate_faults(const Request& request, const library::KernelSource& source,
                    const compiler::Target& target) {
  Subject subject = subject_of(request, source, target);
  checks::ProofOptions options = proof_options(request);
  options.further = std::move(subject.further);
  options.candidates = std::move(subject.candidates);
  options.further_runs = std::move(subject.further_runs);
  options.candidate_runs = std::move(subject.candidate_runs);
  const std::vector<std::string> all_sizes = joined(subject.sizes, subject.candidate_sizes);
  std::vector<std::vector<MutantResult>> listed;
  for (const ir::Kernel& form : subject.forms) listed.push_back(checks::list_mutants(form));
  if (request.list_mutants) {
    std::vector<std::vector<ir::Kernel>> kernels;
    for (const ir::Kernel& form : subject.forms) kernels.push_back({form});
    return print_mutants(listed, kernels);
  }
  JudgedFile judged(request.judged, all_sizes);
  std::vector<MutantResult> results;
  for (std::size_t form = 0; form < subject.forms.size(); ++form) {
    std::unique_ptr<ProgressBar> progress;
    options.mutants = wanted_mutants(request, sizes_of(listed), form);
    if (form > 0) {  // they are of the first one
      options.further_runs.clear();
      options.candidate_runs.clear();
    }
    std::vector<MutantResult> more = checks::prove_by_faults(
        subject.forms[form], subject.workloads, options,
        [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
        [&](const checks::MutantResult& result) {
          progress->advance();
          judged.add(result);
        });
    std::move(more.begin(), more.end(), std::back_inserter(results));
  }

  Kinds kinds;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) kinds.push_back(&kind);
  const bool ok = is_proven(results);
  if (request.json) {
    Json json = {{"ok", ok},
                 {"kernel", subject.forms.front().name},
                 {"target", target.name},
                 {"sizes", subject.sizes},
                 {"schedules", options.more},
                 {"launches", options.launches}};
    json["operations"] = operations_json(subject);
    json.update(table_json(kinds, results, all_sizes));
    fmt::print("{}\n", json_text(json));
  } else {
    fmt::print("{} on simulated {}: {}, each under up to {} of {}\n", subject.forms.front().name,
               target.name, counted(results.size(), "mutant"), counted(options.more, "schedule"),
               counted(options.launches, "launch"));
    for (std::size_t i = 0; i < subject.sizes.size(); ++i) {
      if (subject.sizes[i].empty()) continue;
      fmt::print("  shrunken sizes ({}): {}\n",
                 i < subject.workloads.size() ? "stages + 1 steps, tails"
                                              : "for what these do not come to",
                 subject.sizes[i]);
    }
    print_unreached(subject);
    print_table(kinds, results);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

int simulate_program_faults(const Request& request, const std::vector<checks::ProgramCase>& cases,
                            const std::vector<std::vector<ir::Kernel>>& forms, const Title& title,
                            const std::vector<std::string>& sizes, bool all_of_kernels,
                            const Candidates& candidates) {
  checks::ProofOptions options = proof_options(request);
  // The library's have no words that count up with the runs.
  options.launches = all_of_kernels ? title.runs : std::max(kProofRuns, title.runs);
  if (options.parts > 1 && checks::has_waits(cases.front().program)) {
    Diagnostic({}, fmt::format("--part {}: the faults of a program with waits are judged together, "
                               "since these may stand in for each other",
                               request.part))
        .fix("leave --part out; --threads shares them out")
        .raise();
  }
  std::vector<std::vector<MutantResult>> listed;
  for (const std::vector<ir::Kernel>& machine : forms) {
    ir::Program program = cases.front().program;
    ir::add_owned(program, machine);
    listed.push_back(
        checks::list_mutants(program, machine, all_of_kernels, cases.front().recorded));
  }
  if (request.list_mutants) return print_mutants(listed, forms);
  const std::vector<std::string> all_sizes = joined(sizes, candidates.sizes);
  JudgedFile judged(request.judged, all_sizes);
  std::vector<MutantResult> results;
  for (std::size_t form = 0; form < forms.size(); ++form) {
    const std::vector<ir::Kernel>& machine = forms[form];
    std::unique_ptr<ProgressBar> progress;
    std::vector<checks::ProgramCase> own = cases;
    for (checks::ProgramCase& each : own) {
      ir::add_owned(each.program, machine);
      each.rebind = with_owned(std::move(each.rebind), machine);
    }
    checks::CaseMakers own_candidates;
    for (const auto& make : candidates.cases) {
      own_candidates.push_back([&make, &machine] {
        checks::ProgramCase made = make();
        ir::add_owned(made.program, machine);
        return made;
      });
    }
    options.mutants = wanted_mutants(request, sizes_of(listed), form);
    std::vector<MutantResult> more = checks::prove_program(
        own, machine, options,
        [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
        [&](const checks::MutantResult& result) {
          progress->advance();
          judged.add(result);
        },
        all_of_kernels, own_candidates);
    std::move(more.begin(), more.end(), std::back_inserter(results));
  }
  const Kinds kinds = checks::proof_kinds(all_of_kernels);
  const bool ok = is_proven(results);
  if (request.json) {
    Json json = {{"ok", ok},
                 {"program", title.name},
                 {"target", title.target},
                 {"ranks", title.ranks},
                 {"sizes", sizes},
                 {"schedules", options.more},
                 {"runs", options.launches},
                 {"launches", title.launches}};
    json.update(table_json(kinds, results, all_sizes));
    fmt::print("{}\n", json_text(json));
  } else {
    fmt::print("{}, {}, on simulated {}: {}, each under up to {} of {}\n", title.name,
               ir::ranks_text(title.ranks), title.target, counted(results.size(), "mutant"),
               counted(options.more, "schedule"), counted(options.launches, "run"));
    for (const std::string& each : sizes) fmt::print("  shrunken sizes: {}\n", each);
    print_table(kinds, results);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
