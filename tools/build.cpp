#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "ahead/c_files.h"
#include "ahead/exported.h"
#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/kernel_source.h"
#include "size_axes.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/file.h"
#include "support/folder.h"
#include "support/progress.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

// The architecture, "sm_90a".
std::string exported_target(const Request& request) {
  const compiler::Target target = compiler::parse_target(request.target);
  if (target.kind == compiler::Target::Kind::architecture) return target.arch;
  Diagnostic({}, fmt::format("target {} has no form in C", target.name))
      .fix("name an architecture: sm_90a")
      .raise();
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

}  // namespace

int build(const Request& request) {
  const library::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  std::optional<ProgressBar> bar;
  std::size_t done = 0;
  const ahead::Exported exported = ahead::export_operation(
      source, resolve_options(entry, request.settings), exported_target(request),
      kept_sizes(request, entry),
      [&](const ir::Kernel& kernel, const std::string& arch) {
        compiler::BuildOptions how;
        how.machine = compilation_of(request);
        return compiler::build_kernel(kernel, arch, how);
      },
      [&](std::size_t now, std::size_t all) {
        if (!bar) bar.emplace("building", static_cast<std::int64_t>(all));
        bar->advance(static_cast<std::int64_t>(now - done));
        done = now;
      });
  bar.reset();
  make_folder(request.folder);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const auto& [name, text] : ahead::c_files(exported)) {
    const std::string path = (std::filesystem::path(request.folder) / name).string();
    write_text(path, text);
    files.push_back(path);
  }
  if (request.json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json({{"ok", true},
                                                         {"kernel", exported.name},
                                                         {"target", exported.arch},
                                                         {"variants", exported.variants.size()},
                                                         {"files", files}})));
    return 0;
  }
  fmt::print("{} for {}, {}: {}.c, .h, .json, .cmake and .pc are in {}\n", exported.name,
             exported.arch, counted(exported.variants.size(), "variant"), exported.name,
             request.folder);
  return 0;
}

}  // namespace tilewright::tools
