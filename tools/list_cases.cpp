#include "list_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "check/plan_cover.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/library_build.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "tilewright/library.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUsualTarget = "sm_90a";
// So many for each schedule find every pair of cases several times over. Cores have the tile level
// alone, and each setting is compiled.
constexpr std::size_t kDraws = 1500, kCoreDraws = 40;

std::string target_to_cover(const Request& request) {
  return request.target.empty() ? kUsualTarget : request.target;
}

bool is_core(const std::string& target) {
  return compiler::has_explicit_memories(compiler::parse_target(target));
}

// The plans are those of explicit schedules for the target. What has none is compiled as for the
// usual one, from which it is covered.
std::vector<LibraryKernel> kernels_for(const std::string& target) {
  std::vector<LibraryKernel> kernels = kernel_library();
  if (target == kUsualTarget || is_core(target)) return kernels;
  std::erase_if(kernels, [&](const LibraryKernel& kernel) {
    return std::none_of(kernel.schedules.begin(), kernel.schedules.end(),
                        [&](const LibrarySchedule& each) { return each.target == target; });
  });
  return kernels;
}

int list_of_setting(const Request& request, const LibraryKernel& kernel) {
  const std::string target = target_to_cover(request);
  const std::set<std::string> cases = checks::plan_cases(kernel, request.settings, target);
  if (is_core(target) && !library::compiles(kernel, resolve_options(kernel, request.settings),
                                            compiler::parse_target(target))) {
    Diagnostic({}, fmt::format("{} does not take {} with these settings", target, kernel.name))
        .fix(fmt::format("tilewright list {} --cases --target {} lists those that it takes",
                         kernel.name, target))
        .raise();
  }
  if (request.json) {
    fmt::print(
        "{}\n",
        json_text(Json{{"name", kernel.name}, {"settings", request.settings}, {"cases", cases}}));
  } else {
    for (const std::string& each : cases) fmt::print("{}\n", each);
  }
  return 0;
}

Json json_of(const checks::PlanCover& cover) {
  Json settings = Json::array();
  for (const checks::PlanSetting& each : cover.settings) {
    settings.push_back(
        {{"settings", each.settings}, {"adds_cases", each.adds_cases}, {"cases", each.cases}});
  }
  return {{"name", cover.kernel->name},
          {"program", cover.kernel->is_program()},
          {"over_ranks", cover.kernel->over_ranks},
          {"drawn", cover.drawn},
          {"cases", cover.cases},
          {"pairs", cover.pairs},
          {"settings", settings}};
}

void print(const checks::PlanCover& cover) {
  fmt::print("{}: {} and {} of them, in {} of {} settings\n", cover.kernel->name,
             counted(static_cast<std::int64_t>(cover.cases), "case"),
             counted(static_cast<std::int64_t>(cover.pairs), "pair"), cover.settings.size(),
             cover.drawn);
  for (const checks::PlanSetting& each : cover.settings) {
    fmt::print("  {}{}\n", fmt::join(each.settings, " "),
               each.adds_cases ? "" : "  (for its schedule alone)");
  }
}

}  // namespace

int list_cases(const Request& request) {
  if (!request.settings.empty()) {
    if (!request.kernel.empty()) return list_of_setting(request, find_kernel(request.kernel));
    Diagnostic({}, fmt::format("--set {}: of no kernel", request.settings.front()))
        .fix("tilewright list KERNEL --cases --set name=value")
        .raise();
  }
  const std::string target = target_to_cover(request);
  std::vector<LibraryKernel> asked = kernels_for(target);
  if (!request.kernel.empty()) {
    const std::string& name = find_kernel(request.kernel).name;
    std::erase_if(asked, [&](const LibraryKernel& kernel) { return kernel.name != name; });
  }
  const std::vector<checks::PlanCover> covers =
      checks::cover_plans(asked, target, is_core(target) ? kCoreDraws : kDraws, request.seed);
  // Kernels share code: what one of them never comes to another one may. What a core refuses leads
  // nowhere there.
  const bool all = request.kernel.empty() && !is_core(target);
  const std::set<std::string> missing =
      all ? checks::missing_cases(covers) : std::set<std::string>();
  Json kernels = Json::array();
  for (const checks::PlanCover& cover : covers) {
    if (cover.settings.empty()) continue;
    if (request.json) {
      kernels.push_back(json_of(cover));
    } else {
      print(cover);
    }
  }
  if (request.json) {
    fmt::print("{}\n", json_text(Json{{"kernels", kernels}, {"missing", missing}}));
  }
  for (const std::string& each : missing) {
    if (!request.json) fmt::print("no setting leads to the case \"{}\"\n", each);
  }
  return missing.empty() ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
