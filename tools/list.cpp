#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/schedule_choice.h"
#include "list_cases.h"
#include "support/diagnostic.h"
#include "tilewright/library.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

const char* kind_name(const KernelOption& option) {
  switch (option.kind) {
    case KernelOption::Kind::integer:
      return "integer";
    case KernelOption::Kind::number:
      return "number";
    case KernelOption::Kind::boolean:
      return "boolean";
    case KernelOption::Kind::dtype:
      return "dtype";
    case KernelOption::Kind::lengths:
      return "lengths";
    case KernelOption::Kind::choice:
      break;
  }
  return "choice";
}

// Of one target alone, where one is named.
bool is_listed(const std::string& asked, std::string_view target) {
  return asked.empty() || asked == target;
}

Json json_of(const LibraryKernel& kernel, const std::string& asked) {
  Json options = Json::array();
  for (const KernelOption& option : kernel.options) {
    Json entry = {{"name", option.name},
                  {"description", option.description},
                  {"kind", kind_name(option)},
                  {"default", option.standard},
                  {"is_length", option.is_length}};
    if (option.kind == KernelOption::Kind::integer) {
      entry["minimum"] = option.minimum;
      entry["maximum"] = option.maximum;
    }
    if (!option.choices.empty()) entry["choices"] = option.choices;
    options.push_back(std::move(entry));
  }
  Json tensors = Json::array();
  for (const LibraryTensor& tensor : kernel.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"shape", tensor.shape},
                       {"dtype", tensor.dtype ? name_of(*tensor.dtype) : "dtype"},
                       {"output", tensor.is_output}});
  }
  Json schedules = Json::array();
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (!is_listed(asked, schedule.target)) continue;
    schedules.push_back({{"name", schedule.name},
                         {"target", schedule.target},
                         {"description", schedule.description}});
  }
  Json variants = Json::object();
  for (const ScheduleRules& rules : kernel.rules) {
    if (!is_listed(asked, rules.target)) continue;
    variants[rules.target] =
        library::variant_names(kernel, resolve_options(kernel, {}), rules.target);
  }
  return {{"name", kernel.name},
          {"description", kernel.description},
          {"program", kernel.is_program()},
          {"over_ranks", kernel.over_ranks},
          {"backward_of", kernel.backward_of},
          {"options", options},
          {"tensors", tensors},
          {"schedules", schedules},
          {"variants", variants}};
}

void print(const LibraryKernel& kernel, const std::string& asked) {
  fmt::print("{}: {}\n", kernel.name, kernel.description);
  if (!kernel.backward_of.empty()) fmt::print("  gradients of {}\n", kernel.backward_of);
  for (const LibraryTensor& tensor : kernel.tensors) {
    fmt::print("  {:<4}{:<13} {} {{{}}}\n", tensor.is_output ? "out" : "in", tensor.name,
               tensor.dtype ? name_of(*tensor.dtype) : "dtype", fmt::join(tensor.shape, ", "));
  }
  for (const KernelOption& option : kernel.options) {
    const std::string choices =
        option.choices.empty() ? "" : fmt::format(" ({})", fmt::join(option.choices, ", "));
    fmt::print("  {:<14} {}{}\n", fmt::format("{}={}", option.name, option.standard),
               option.description, choices);
  }
  for (const ScheduleRules& rules : kernel.rules) {
    if (!is_listed(asked, rules.target)) continue;
    const std::size_t variants =
        library::variant_names(kernel, resolve_options(kernel, {}), rules.target).size();
    fmt::print("  {:<21} {}\n", "variants: " + std::to_string(variants),
               "for all lengths on " + rules.target + ", chosen by " + rules.file);
  }
  fmt::print("  {:<21} {}\n", "schedule=tile",
             kernel.over_ranks
                 ? "the tile-level kernel, in each rank, which reads the others' memory"
             : kernel.is_program()
                 ? "the tile-level kernels of the program, one behind the other on a stream"
                 : "the tile-level definition; for a GPU the compiler makes the schedule");
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (!is_listed(asked, schedule.target)) continue;
    fmt::print("  {:<21} {}: {}\n", "schedule=" + schedule.name, schedule.target,
               schedule.description);
  }
}

}  // namespace

int list(const Request& request) {
  if (!request.target.empty())
    compiler::parse_target(request.target);  // an unknown one is an error
  if (request.cases) return list_cases(request);
  if (!request.settings.empty()) {
    Diagnostic(
        {}, fmt::format("--set {}: what is listed depends on no setting", request.settings.front()))
        .fix("--cases lists the cases of a kernel's settings")
        .raise();
  }
  if (request.kernel.ends_with(".tw")) {
    const library::KernelSource source = open_kernel(request.kernel);
    if (request.json) {
      const Json kernels = Json::array({json_of(source.entry(), request.target)});
      fmt::print("{}\n", json_text(Json{{"kernels", kernels}}));
    } else {
      print(source.entry(), request.target);
    }
    return 0;
  }
  const auto is_asked = [&](const LibraryKernel& kernel) {
    return request.kernel.empty() || &kernel == &find_kernel(request.kernel);
  };
  if (request.json) {
    Json kernels = Json::array();
    for (const LibraryKernel& kernel : kernel_library()) {
      if (is_asked(kernel)) kernels.push_back(json_of(kernel, request.target));
    }
    fmt::print("{}\n", json_text(Json{{"kernels", kernels}}));
    return 0;
  }
  for (const LibraryKernel& kernel : kernel_library()) {
    if (is_asked(kernel)) print(kernel, request.target);
  }
  return 0;
}

}  // namespace tilewright::tools
