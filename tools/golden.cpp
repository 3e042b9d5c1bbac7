#include "check/golden.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "accuracy_report.h"
#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string poison_text(const checks::GoldenCase& of) {
  std::vector<std::string> all;
  for (const checks::GoldenInput& input : of.inputs) {
    if (input.poisoned > 0) all.push_back(fmt::format("{} of {}", input.poisoned, input.name));
  }
  return all.empty() ? "" : fmt::format("; NaN where nobody reads: {}", fmt::join(all, ", "));
}

std::string shapes_text(const checks::GoldenCase& of) {
  std::vector<std::string> all;
  std::set<std::string> named;  // what is given and written stands once
  const auto add = [&](const auto& tensors) {
    for (const auto& each : tensors) {
      if (!named.insert(each.name).second) continue;
      all.push_back(fmt::format("{} {{{}}}", each.name, fmt::join(each.shape, ", ")));
    }
  };
  add(of.inputs);
  add(of.outputs);
  return fmt::format("{}", fmt::join(all, ", "));
}

// A kernel's name, and that it is a file's: one of the library may have the same.
std::string title_of(const library::KernelSource& source) {
  return source.entry().name + (source.is_file() ? " of a file" : "");
}

// The kernel of the data that the folder has; "" where it has none that can be read.
std::string title_in(const std::string& folder) {
  try {
    const checks::GoldenManifest before =
        checks::read_manifest(folder + "/" + checks::kGoldenManifest);
    // One of the library may be a plug-in's that is not here.
    if (before.kernel != checks::kGoldenKernel) return before.kernel;
    return title_of(checks::GoldenFolder(folder, find_kernel).source());
  } catch (const Error&) {
    return {};
  }
}

// Its cases would stay beside those of this one.
void check_folder(const std::string& folder, const library::KernelSource& source) {
  const std::string before = title_in(folder);
  if (before.empty() || before == title_of(source)) return;
  Diagnostic({}, fmt::format("golden: {} has data of {}, and this is {}", folder, before,
                             title_of(source)))
      .fix("write --out with another folder, or remove this one")
      .raise();
}

// The same error, with the case that it came up in.
Error in_case(const Error& error, const checks::GoldenSizes& sizes) {
  const std::string text =
      fmt::format("in case {}: {}", sizes.name, fmt::join(sizes.settings, ", "));
  return Error(error.kind(), error.location(), fmt::format("{}; {}", error.message(), text),
               fmt::format("{}\n  {}", error.what(), escaped_lines(text)), error.fix());
}

}  // namespace

int golden(const Request& request) {
  if (request.folder.empty()) {
    Diagnostic({}, "golden: --out says no folder").fix("write --out DIR").raise();
  }
  const library::KernelSource source = open_kernel(request.kernel);
  check_folder(request.folder, source);
  const std::map<std::string, std::string> inputs = parse_files(request.inputs, "--in");
  std::vector<checks::GoldenData> all;
  for (const checks::GoldenSizes& sizes : checks::golden_sizes(source, request.settings, inputs)) {
    try {
      all.push_back(checks::make_golden(source, sizes, inputs, request.seed));
    } catch (const Error& error) {
      if (sizes.settings == request.settings) throw;
      throw in_case(error, sizes);
    }
  }
  checks::write_golden(request.folder, source, all);

  Json cases = Json::array();
  for (const checks::GoldenData& data : all) {
    const checks::GoldenCase& of = data.description;
    cases.push_back({{"name", of.name}, {"settings", of.settings}, {"weaknesses", of.weaknesses}});
    if (request.json) continue;
    fmt::print("{}: {}{}\n", of.name, shapes_text(of), poison_text(of));
    for (const std::string& weakness : of.weaknesses) fmt::print("  weakness: {}\n", weakness);
  }
  if (request.json) {
    fmt::print("{}\n", json_text(Json{{"ok", true},
                                      {"kernel", source.entry().name},
                                      {"folder", request.folder},
                                      {"cases", cases}}));
  } else {
    const std::string folder = escaped_lines(request.folder);
    fmt::print("{} of {} in {}; tilewright check {} holds outputs against {}\n",
               counted(all.size(), "case"), source.entry().name, folder, folder,
               all.size() == 1 ? "it" : "them");
  }
  return 0;
}

namespace {

// Of one case: the outputs that a file holds, or those of our own run.
void take_outputs(const Request& request, const checks::GoldenFolder& folder,
                  const std::string& file, checks::GoldenData& data) {
  if (request.target.empty()) return checks::read_outputs(file, data);
  const compiler::Target target = runnable_target(request);
  data.workload.poison_outputs();
  execute(runnable_of(request, folder.source(), data.workload.options, target), target,
          data.workload);
}

std::string outputs_of(const Request& request, const checks::GoldenFolder& golden,
                       const checks::GoldenCase& of) {
  return request.outputs_folder.empty() ? golden.path(of.outputs_file())
                                        : request.outputs_folder + "/" + of.outputs_file();
}

void check_outputs_are_there(const Request& request, const checks::GoldenFolder& golden) {
  if (!request.target.empty()) return;
  for (const checks::GoldenCase& each : golden.manifest().cases) {
    const std::string file = outputs_of(request, golden, each);
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) continue;
    Diagnostic({}, fmt::format("{}: there are no outputs of case {}", file, each.name))
        .fix(fmt::format("run the implementation on {}, and write what it computes there, by the "
                         "names of the outputs; --outputs names another folder; --target cpu has "
                         "Tilewright's own kernel checked",
                         each.inputs_file()))
        .raise();
  }
}

}  // namespace

int check(const Request& request) {
  const checks::GoldenFolder golden(request.folder, find_kernel);
  check_outputs_are_there(request, golden);
  bool ok = true;
  Json cases = Json::array();
  for (const checks::GoldenCase& each : golden.manifest().cases) {
    checks::GoldenData data = golden.read(each);
    const std::vector<std::string> weaknesses = checks::new_weaknesses(golden.source(), data);
    take_outputs(request, golden, outputs_of(request, golden, each), data);
    const library::Comparison comparison = checks::compare(data);
    const bool is_right = comparison.ok() && weaknesses.empty();
    ok = ok && is_right;
    cases.push_back({{"name", each.name},
                     {"ok", is_right},
                     {"outputs", json_of(comparison)},
                     {"weaknesses", weaknesses},
                     {"known_weaknesses", each.weaknesses}});
    if (request.json) continue;
    fmt::print("case {}\n", each.name);
    print_comparison(comparison);
    // Whoever wrote the manifest may have written anything.
    for (const std::string& weakness : weaknesses) {
      fmt::print("weak data: {}\n", escaped_lines(weakness));
    }
    for (const std::string& known : each.weaknesses) {
      fmt::print("known weakness: {}\n", escaped_lines(known));
    }
  }
  if (request.json) {
    fmt::print(
        "{}\n",
        json_text(Json{{"ok", ok}, {"kernel", golden.source().entry().name}, {"cases", cases}}));
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
