#include "runtime/doctor.h"
#include "json_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const runtime::DoctorReport& report) {
  Json compilers = Json::array(), gpus = Json::array(), missing = Json::array();
  for (const runtime::CompilerInfo& compiler : report.compilers) {
    compilers.push_back(
        {{"name", compiler.name}, {"path", compiler.path}, {"version", compiler.version}});
  }
  for (const runtime::DeviceInfo& gpu : report.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"arch", gpu.arch()},
                    {"multiprocessors", gpu.multiprocessors},
                    {"memory_bytes", gpu.memory_bytes},
                    {"l2_bytes", gpu.l2_bytes},
                    {"shared_bytes", gpu.max_shared_bytes}});
  }
  for (const runtime::MissingPart& part : report.missing) {
    missing.push_back({{"what", part.what},
                       {"needed_for", part.needed_for},
                       {"how_to_get_it", part.how_to_get_it}});
  }
  Json nvrtc, driver;
  if (report.nvrtc) {
    nvrtc = {{"path", report.nvrtc->path}, {"version", report.nvrtc->version}};
  }
  if (report.driver_cuda_version) {
    driver = {{"version", report.driver_version ? Json(*report.driver_version) : Json()},
              {"cuda", *report.driver_cuda_version}};
  }
  return {{"cpu",
           {{"name", report.cpu.name},
            {"threads", report.cpu.threads},
            {"features", report.cpu.features}}},
          {"compilers", compilers},
          {"gpus", gpus},
          {"nvrtc", nvrtc},
          {"driver", driver},
          {"cache", report.cache_folder},
          {"missing", missing}};
}

}  // namespace

int doctor(const Request& request) {
  const runtime::DoctorReport report = runtime::examine_machine();
  if (request.json) {
    fmt::print("{}\n", json_text(json_of(report)));
    return 0;
  }
  fmt::print("cpu        {}, {} threads ({})\n", report.cpu.name, report.cpu.threads,
             fmt::join(report.cpu.features, ", "));
  for (const runtime::CompilerInfo& compiler : report.compilers) {
    fmt::print("compiler   {} {} ({})\n", compiler.name, compiler.version, compiler.path);
  }
  if (report.driver_cuda_version) {
    fmt::print("driver     {} (CUDA {})\n", report.driver_version.value_or("unknown"),
               *report.driver_cuda_version);
  }
  if (report.nvrtc) {
    fmt::print("NVRTC      {} ({})\n", report.nvrtc->version, report.nvrtc->path);
  }
  for (const runtime::DeviceInfo& gpu : report.gpus) {
    fmt::print("GPU        {} ({}), {} multiprocessors, {:.0f} GB\n", gpu.name, gpu.arch(),
               gpu.multiprocessors, static_cast<double>(gpu.memory_bytes) / 1e9);
  }
  fmt::print("cache      {}\n", report.cache_folder.empty()
                                    ? "none: TILEWRIGHT_CACHE and HOME are not set"
                                    : report.cache_folder);
  for (const runtime::MissingPart& part : report.missing) {
    fmt::print("missing    {}\n           for {}\n           fix: {}\n", part.what, part.needed_for,
               part.how_to_get_it);
  }
  return 0;
}

}  // namespace tilewright::tools
