#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "ahead/c_files.h"
#include "ahead/exported.h"
#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/kernel_source.h"
#include "size_axes.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/folder.h"
#include "support/progress.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

struct ExportedTargets {
  std::vector<std::string> architectures;
  bool with_cpu = false;
};

// Those of "sm_90a,sm_100a,cpu".
ExportedTargets exported_targets(const Request& request) {
  ExportedTargets targets;
  std::vector<std::string>& architectures = targets.architectures;
  std::stringstream names(request.target);
  for (std::string name; std::getline(names, name, ',');) {
    const compiler::Target target = compiler::parse_target(name);
    const bool is_cpu = target.kind == compiler::Target::Kind::cpu;
    if (target.kind != compiler::Target::Kind::architecture && !is_cpu) {
      Diagnostic({}, fmt::format("target {} has no form in C", target.name))
          .fix("name architectures, and perhaps the CPU behind them: sm_90a,sm_100a,cpu")
          .raise();
    }
    if (is_cpu ? targets.with_cpu
               : std::count(architectures.begin(), architectures.end(), target.arch) != 0) {
      Diagnostic({}, fmt::format("target {} is named twice", name)).fix("name it once").raise();
    }
    if (is_cpu) {
      targets.with_cpu = true;
    } else {
      architectures.push_back(target.arch);
    }
  }
  if (architectures.empty()) {
    Diagnostic({}, "target cpu alone has no form in C")
        .fix(
            "name an architecture before it: sm_90a,cpu. Programs for the CPU alone link "
            "libtilewright.so")
        .raise();
  }
  return targets;
}

std::vector<OptionValues> kept_sizes(const Request& request, const LibraryKernel& entry) {
  std::vector<OptionValues> kept;
  if (request.sizes.empty()) return kept;
  const std::vector<library::TunedAxis> axes = parse_axes(entry, request.sizes);
  for (const std::vector<std::size_t>& place : places_of(axes)) {
    std::vector<std::string> settings = request.settings;
    for (std::string& size : sizes_at(axes, place)) settings.push_back(std::move(size));
    kept.push_back(resolve_options(entry, settings));
  }
  return kept;
}

ahead::Exported exported_for(const std::string& arch, const Request& request,
                             const library::KernelSource& source) {
  const LibraryKernel& entry = source.entry();
  std::optional<ProgressBar> bar;
  std::size_t done = 0;
  return ahead::export_operation(
      source, resolve_options(entry, request.settings), arch, kept_sizes(request, entry),
      [&](const ir::Kernel& kernel, const std::string& to) {
        compiler::BuildOptions how;
        how.machine = compilation_of(request);
        return compiler::build_kernel(kernel, to, how);
      },
      [&](std::size_t now, std::size_t all) {
        if (!bar) bar.emplace("building for " + arch, static_cast<std::int64_t>(all));
        bar->advance(static_cast<std::int64_t>(now - done));
        done = now;
      });
}

}  // namespace

int build(const Request& request) {
  const library::KernelSource source = open_kernel(request.kernel);
  std::vector<ahead::Exported> all;
  std::size_t variants = 0;
  const ExportedTargets targets = exported_targets(request);
  for (const std::string& arch : targets.architectures) {
    all.push_back(exported_for(arch, request, source));
    variants += all.back().variants.size();
  }
  const std::string& name = all.front().name;
  make_folder(request.folder);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const auto& [file, text] : ahead::c_files(all, targets.with_cpu)) {
    const std::string path = (std::filesystem::path(request.folder) / file).string();
    write_text(path, text);
    files.push_back(path);
  }
  if (request.json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json({{"ok", true},
                                                         {"kernel", name},
                                                         {"target", request.target},
                                                         {"variants", variants},
                                                         {"files", files}})));
    return 0;
  }
  fmt::print("{} for {}, {}: {}.c, .h, .json, .cmake and .pc are in {}\n", name, request.target,
             counted(variants, "variant"), name, escaped_lines(request.folder));
  return 0;
}

}  // namespace tilewright::tools
