#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "command.h"
#include "driver/explanation.h"
#include "driver/library_build.h"
#include "tilewright/error.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

Json known(std::int64_t value) { return value < 0 ? Json() : Json(value); }

Json json_of(const driver::Explanation& explanation) {
  Json stages = Json::array();
  for (const driver::Stage& stage : explanation.stages) {
    stages.push_back(
        {{"name", stage.name}, {"milliseconds", stage.milliseconds}, {"changed", stage.changed}});
  }
  const driver::Resources& resources = explanation.resources;
  Json shared = Json::object();
  for (const driver::SharedUse& use : explanation.shared) shared[use.name] = use.bytes;
  return {{"stages", stages},
          {"front_end_milliseconds", explanation.front_end_milliseconds},
          {"build_milliseconds", explanation.build_milliseconds},
          {"from_cache", explanation.from_cache},
          {"resources",
           {{"registers", known(resources.registers)},
            {"stack_bytes", known(resources.stack_bytes)},
            {"spill_bytes", known(resources.spill_bytes)},
            {"shared_bytes", known(resources.shared_bytes)}}},
          {"shared", shared},
          {"instructions", explanation.instructions},
          {"warnings", explanation.warnings}};
}

void print(const driver::Explanation& explanation) {
  for (const driver::Stage& stage : explanation.stages) {
    fmt::print("{:<36} {:8.3f} ms{}\n", stage.name, stage.milliseconds,
               stage.changed ? "" : "  (nothing changed)");
  }
  fmt::print("{:<36} {:8.3f} ms\n", "trace to source", explanation.front_end_milliseconds);
  if (explanation.build_milliseconds > 0) {
    fmt::print("{:<36} {:8.3f} ms{}\n", "assembler", explanation.build_milliseconds,
               explanation.from_cache ? "  (from the cache)" : "");
  }
  const driver::Resources& resources = explanation.resources;
  if (resources.registers >= 0) {
    fmt::print("registers {}, stack {} bytes, spills {} bytes\n", resources.registers,
               resources.stack_bytes, resources.spill_bytes);
  }
  if (resources.shared_bytes >= 0) fmt::print("shared memory {} bytes\n", resources.shared_bytes);
  for (const driver::SharedUse& use : explanation.shared) {
    fmt::print("  {:<14} {}\n", use.name, use.bytes);
  }
  for (const auto& [name, count] : explanation.instructions) {
    fmt::print("{:<36} {:8}\n", name, count);
  }
  // That there is no cubin is the error that ends the command.
  if (explanation.no_cubin) return;
  for (const std::string& warning : explanation.warnings) fmt::print("warning: {}\n", warning);
}

}  // namespace

int explain(const Request& request) {
  const LibraryKernel& entry = find_kernel(request.kernel);
  const driver::Target target = driver::parse_target(request.target);
  const OptionValues options = resolve_options(entry, request.settings);
  const driver::Explanation explanation =
      driver::explain([&] { return driver::trace_entry(entry, options, target); }, target);
  if (!request.dump.empty()) driver::write_dump(request.dump, explanation.dump);
  if (request.json) {
    fmt::print("{}\n", json_of(explanation).dump(2));
  } else {
    print(explanation);
    if (!request.dump.empty()) fmt::print("stages and source are in {}\n", request.dump);
  }
  if (!explanation.no_cubin) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", explanation.no_cubin->c_str());
  return static_cast<int>(ErrorKind::unavailable);
}

}  // namespace tilewright::tools
