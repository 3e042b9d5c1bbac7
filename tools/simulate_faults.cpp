#include "simulate_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "driver/build.h"
#include "driver/claims.h"
#include "driver/fault_proof.h"
#include "driver/rewrites.h"
#include "driver/shrunken_sizes.h"
#include "support/diagnostic.h"
#include "support/progress.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;
using driver::MutantResult;
using Verdict = MutantResult::Verdict;

struct Row {
  std::set<std::size_t> sites;
  std::map<Verdict, std::int64_t> verdicts;
  std::int64_t mutants = 0, right_class = 0, both_lines = 0;

  void add(const MutantResult& result) {
    ++mutants;
    ++verdicts[result.verdict];
    sites.insert(result.mutant.site);
    right_class += result.right_class;
    both_lines += result.both_lines;
  }
  std::int64_t count(Verdict verdict) const {
    const auto found = verdicts.find(verdict);
    return found == verdicts.end() ? 0 : found->second;
  }
};

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::caught:
      return "caught";
    case Verdict::rejected:
      return "rejected";
    case Verdict::equivalent:
      return "equivalent";
    case Verdict::unreached:
      return "unreached";
    case Verdict::survived:
      return "survived";
  }
  return "";
}

std::string absence(const simulator::FaultKind& kind) {
  return fmt::format("no site {}: {}", kind.seed ? "in this kernel" : "on sm_90a", kind.absent);
}

std::string mutant_text(const MutantResult& result) {
  return fmt::format("  {:>2}  {}  {} {}", result.kind->number,
                     format_location(result.mutant.where), result.mutant.operation,
                     result.mutant.change);
}

void print_rows(const std::map<int, Row>& rows) {
  const auto print = [](const std::string& name, const Row& row) {
    fmt::print("{:<52} {:>5} {:>7} {:>8} {:>10} {:>9} {:>6} {:>5} {:>5} {:>8}\n", name,
               row.sites.size(), row.mutants, row.count(Verdict::rejected),
               row.count(Verdict::equivalent), row.count(Verdict::unreached),
               row.count(Verdict::caught), row.right_class, row.both_lines,
               row.count(Verdict::survived));
  };
  fmt::print("{:<52} {:>5} {:>7} {:>8} {:>10} {:>9} {:>6} {:>5} {:>5} {:>8}\n", "fault", "sites",
             "mutants", "rejected", "equivalent", "unreached", "caught", "class", "lines",
             "survived");
  Row all;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    const std::string name = fmt::format("{:>2} {}", kind.number, kind.name);
    const auto found = rows.find(kind.number);
    if (found == rows.end()) {
      fmt::print("{:<52} {}\n", name, absence(kind));
      continue;
    }
    const Row& row = found->second;
    print(name, row);
    all.sites.insert(row.sites.begin(), row.sites.end());
    all.mutants += row.mutants;
    all.right_class += row.right_class;
    all.both_lines += row.both_lines;
    for (const auto& [verdict, count] : row.verdicts) all.verdicts[verdict] += count;
  }
  print("   all", all);
}

void print_details(const std::vector<MutantResult>& results) {
  const auto list = [&](const char* title, const auto& wanted, const auto& detail) {
    bool first = true;
    for (const MutantResult& result : results) {
      if (!wanted(result)) continue;
      if (first) fmt::print("{}\n", title);
      first = false;
      fmt::print("{}\n      {}\n", mutant_text(result), detail(result));
    }
  };
  list(
      "equivalent, and why:",
      [](const MutantResult& r) { return r.verdict == Verdict::equivalent; },
      [](const MutantResult& r) { return r.mutant.equivalent; });
  list(
      "rejected by the verifier:",
      [](const MutantResult& r) { return r.verdict == Verdict::rejected; },
      [](const MutantResult& r) { return r.fault.message; });
  list(
      "caught as another fault:",
      [](const MutantResult& r) { return r.verdict == Verdict::caught && !r.right_class; },
      [](const MutantResult& r) { return r.fault.message.substr(0, r.fault.message.find('\n')); });
  list(
      "caught, with one line alone:",
      [](const MutantResult& r) { return r.verdict == Verdict::caught && !r.both_lines; },
      [](const MutantResult& r) { return r.fault.message.substr(0, r.fault.message.find('\n')); });
  list(
      "not executed with any of these sizes:",
      [](const MutantResult& r) { return r.verdict == Verdict::unreached; },
      [](const MutantResult&) { return "unknown whether it is found"; });
  list(
      "survivors:", [](const MutantResult& r) { return r.verdict == Verdict::survived; },
      [](const MutantResult&) { return "not caught"; });
}

Json json_of(const MutantResult& result, const std::vector<std::string>& sizes) {
  Json json = {{"kind", result.kind->number},
               {"where", format_location(result.mutant.where)},
               {"operation", result.mutant.operation},
               {"change", result.mutant.change},
               {"verdict", name_of(result.verdict)}};
  if (result.verdict == Verdict::equivalent) json["why"] = result.mutant.equivalent;
  if (result.verdict == Verdict::rejected) json["why"] = result.fault.message;
  if (result.verdict == Verdict::caught) {
    json["fault"] = result.fault.kind;
    json["first"] = format_location(result.fault.first);
    json["second"] = format_location(result.fault.second);
    json["missing"] = result.fault.missing;
    json["message"] = result.fault.message;
    json["sizes"] = sizes[result.workload];
    json["seed"] = result.seed;
    json["right_class"] = result.right_class;
    json["both_lines"] = result.both_lines;
  }
  return json;
}

Json json_of(const std::map<int, Row>& rows) {
  Json kinds = Json::array();
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    Json json = {{"number", kind.number}, {"name", kind.name}};
    const auto found = rows.find(kind.number);
    if (found == rows.end()) {
      json["absent"] = absence(kind);
    } else {
      const Row& row = found->second;
      json["sites"] = row.sites.size();
      json["mutants"] = row.mutants;
      for (const Verdict verdict : {Verdict::caught, Verdict::rejected, Verdict::equivalent,
                                    Verdict::unreached, Verdict::survived}) {
        json[name_of(verdict)] = row.count(verdict);
      }
      json["right_class"] = row.right_class;
      json["both_lines"] = row.both_lines;
    }
    kinds.push_back(std::move(json));
  }
  return kinds;
}

// "2/3" of --part: from number 1 on, of 3.
void set_part(const std::string& text, driver::ProofOptions& options) {
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
  driver::ProofOptions options;
  options.seed = request.seed;
  options.schedules = std::max(options.schedules, request.schedules);
  options.more = request.more_schedules;
  options.launches = std::max(options.launches, request.launches);
  options.usual = subject.usual;
  options.threads = static_cast<unsigned>(request.threads);
  set_part(request.part, options);
  std::unique_ptr<ProgressBar> progress;
  const std::vector<MutantResult> results = driver::prove_by_faults(
      subject.machine, subject.workloads, options,
      [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
      [&] { progress->advance(); });
  progress.reset();

  std::map<int, Row> rows;
  for (const MutantResult& result : results) rows[result.kind->number].add(result);
  const bool ok = std::none_of(results.begin(), results.end(), [](const MutantResult& result) {
    return result.verdict == Verdict::survived;
  });
  if (request.json) {
    Json mutants = Json::array();
    for (const MutantResult& result : results) mutants.push_back(json_of(result, subject.sizes));
    const Json json = {{"ok", ok},
                       {"kernel", subject.machine.name},
                       {"target", target.name},
                       {"sizes", subject.sizes},
                       {"schedules", options.more},
                       {"launches", options.launches},
                       {"kinds", json_of(rows)},
                       {"mutants", mutants}};
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
    print_rows(rows);
    print_details(results);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
