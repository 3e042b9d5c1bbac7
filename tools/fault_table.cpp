#include "fault_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "json_text.h"
#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;
using checks::MutantResult;
using Verdict = MutantResult::Verdict;

struct Row {
  std::set<std::pair<std::size_t, std::size_t>> sites;  // each with its subject
  std::map<Verdict, std::int64_t> verdicts;
  std::int64_t mutants = 0, right_class = 0, both_lines = 0;

  void add(const MutantResult& result) {
    ++mutants;
    ++verdicts[result.verdict];
    sites.emplace(result.subject, result.mutant.site);
    right_class += result.right_class;
    both_lines += result.both_lines;
  }
  // Of a kind that cannot show in the kernel nothing is learned.
  bool has_evidence() const {
    return count(Verdict::equivalent) + count(Verdict::rejected) < mutants ||
           count(Verdict::rejected) > 0;
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
    case Verdict::undecided:
      return "undecided";
  }
  return "";
}

std::string absence(const simulator::FaultKind& kind) {
  return fmt::format("no site here: {}", kind.absent);
}

std::string mutant_text(const MutantResult& result) {
  return fmt::format("  {:>2}  {}  {} {}", result.kind->number,
                     format_location(result.mutant.where), result.mutant.operation,
                     result.mutant.change);
}

// A mutant that is known to be undecided, whatever its line. The numbers in it, as of registers and
// stages, are the setting's.
struct Undecided {
  int kind;
  std::string_view file, operation, change;
};
constexpr Undecided kUndecided[] = {
#include "undecided.def"
    {0, "", "", ""},
};

std::string without_numbers(const std::string& text) {
  std::string result;
  for (const char each : text) {
    const bool is_digit = each >= '0' && each <= '9';
    if (!is_digit) {
      result += each;
    } else if (result.empty() || result.back() != 'N') {
      result += 'N';
    }
  }
  return result;
}

bool is_known(const MutantResult& result) {
  const std::string file = std::filesystem::path(result.mutant.where.file).filename().string();
  const std::string operation = without_numbers(result.mutant.operation);
  const std::string change = without_numbers(result.mutant.change);
  return std::any_of(std::begin(kUndecided), std::end(kUndecided), [&](const Undecided& each) {
    return each.kind == result.kind->number && each.file == file && each.operation == operation &&
           each.change == change;
  });
}

void print_rows(const Kinds& kinds, const std::map<int, Row>& rows) {
  const auto print = [](const std::string& name, const Row& row) {
    fmt::print("{:<52} {:>5} {:>7} {:>8} {:>10} {:>9} {:>9} {:>6} {:>5} {:>5}\n", name,
               row.sites.size(), row.mutants, row.count(Verdict::rejected),
               row.count(Verdict::equivalent), row.count(Verdict::unreached),
               row.count(Verdict::undecided), row.count(Verdict::caught), row.right_class,
               row.both_lines);
  };
  fmt::print("{:<52} {:>5} {:>7} {:>8} {:>10} {:>9} {:>9} {:>6} {:>5} {:>5}\n", "fault", "sites",
             "mutants", "rejected", "equivalent", "unreached", "undecided", "caught", "class",
             "lines");
  Row all;
  for (const simulator::FaultKind* each : kinds) {
    const simulator::FaultKind& kind = *each;
    const std::string name = fmt::format("{:>2} {}", kind.number, kind.name);
    const auto found = rows.find(kind.number);
    if (found == rows.end()) {
      fmt::print("{:<52} {}\n", name, absence(kind));
      continue;
    }
    const Row& row = found->second;
    if (!row.has_evidence()) continue;
    print(name, row);
    all.sites.insert(row.sites.begin(), row.sites.end());
    all.mutants += row.mutants;
    all.right_class += row.right_class;
    all.both_lines += row.both_lines;
    for (const auto& [verdict, count] : row.verdicts) all.verdicts[verdict] += count;
  }
  print("   all", all);
  for (const simulator::FaultKind* each : kinds) {
    const auto found = rows.find(each->number);
    if (found == rows.end() || found->second.has_evidence()) continue;
    const Row& row = found->second;
    fmt::print("not counted: {:>2} {}, of whose {} none can show here\n", each->number, each->name,
               counted(row.mutants, "mutant"));
  }
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
      [](const MutantResult& r) { return r.reason; });
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
      "undecided, and why:", [](const MutantResult& r) { return r.verdict == Verdict::undecided; },
      [](const MutantResult& r) { return (is_known(r) ? "" : "new: ") + r.reason; });
}

Json json_of(const MutantResult& result, const std::vector<std::string>& sizes) {
  Json json = {{"kind", result.kind->number},
               {"where", format_location(result.mutant.where)},
               {"operation", result.mutant.operation},
               {"change", result.mutant.change},
               {"verdict", name_of(result.verdict)}};
  if (!result.reason.empty()) json["why"] = result.reason;
  if (result.verdict == Verdict::undecided) json["new"] = !is_known(result);
  if (result.verdict == Verdict::rejected) json["why"] = result.fault.message;
  if (result.verdict == Verdict::caught) {
    if (!result.shown_by.empty()) json["shown_by"] = result.shown_by;
    json["fault"] = result.fault.kind;
    json["first"] = format_location(result.fault.first);
    json["second"] = format_location(result.fault.second);
    json["missing"] = result.fault.missing;
    json["message"] = result.fault.message;
    if (!sizes.empty()) json["sizes"] = sizes[result.workload];
    json["seed"] = result.seed;
    json["right_class"] = result.right_class;
    json["both_lines"] = result.both_lines;
  }
  return json;
}

Json json_of(const Kinds& kinds_of_table, const std::map<int, Row>& rows) {
  Json kinds = Json::array();
  for (const simulator::FaultKind* each : kinds_of_table) {
    const simulator::FaultKind& kind = *each;
    Json json = {{"number", kind.number}, {"name", kind.name}};
    const auto found = rows.find(kind.number);
    if (found == rows.end()) {
      json["absent"] = absence(kind);
    } else {
      const Row& row = found->second;
      json["sites"] = row.sites.size();
      json["mutants"] = row.mutants;
      for (const Verdict verdict : {Verdict::caught, Verdict::rejected, Verdict::equivalent,
                                    Verdict::unreached, Verdict::undecided}) {
        json[name_of(verdict)] = row.count(verdict);
      }
      json["right_class"] = row.right_class;
      json["both_lines"] = row.both_lines;
    }
    kinds.push_back(std::move(json));
  }
  return kinds;
}

std::map<int, Row> rows_of(const std::vector<MutantResult>& results) {
  std::map<int, Row> rows;
  for (const MutantResult& result : results) rows[result.kind->number].add(result);
  return rows;
}

}  // namespace

JudgedFile::JudgedFile(const std::string& path, std::vector<std::string> sizes)
    : sizes_(std::move(sizes)) {
  if (path.empty()) return;
  file_.open(path, std::ios::trunc);
  if (!file_) {
    Diagnostic({}, fmt::format("--judged {}: cannot be written", path))
        .fix("a file in a folder that exists")
        .raise();
  }
}

void JudgedFile::add(const MutantResult& result) {
  if (!file_.is_open()) return;
  const std::lock_guard lock(mutex_);
  file_ << json_of(result, sizes_).dump(-1, ' ', false, Json::error_handler_t::replace)
        << std::endl;
}

bool is_proven(const std::vector<MutantResult>& results) {
  return std::none_of(results.begin(), results.end(), [](const MutantResult& result) {
    return result.verdict == Verdict::undecided && !is_known(result);
  });
}

void print_table(const Kinds& kinds, const std::vector<MutantResult>& results) {
  print_rows(kinds, rows_of(results));
  print_details(results);
}

Json table_json(const Kinds& kinds, const std::vector<MutantResult>& results,
                const std::vector<std::string>& sizes) {
  Json mutants = Json::array();
  for (const MutantResult& result : results) mutants.push_back(json_of(result, sizes));
  return {{"kinds", json_of(kinds, rows_of(results))}, {"mutants", std::move(mutants)}};
}

}  // namespace tilewright::tools
