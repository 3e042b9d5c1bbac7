#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "compiler/processor.h"
#include "json_text.h"
#include "runtime/doctor.h"
#include "runtime/topology.h"
#include "support/counted.h"
#include "support/escape.h"
#include "tilewright/compile.h"

namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

// null where nothing is known.
Json json_of(const GpuLink& link) {
  Json rate;
  if (link.bytes_per_second > 0) rate = link.bytes_per_second;
  return {{"path", link.name},
          {"nvlinks", link.nvlinks},
          {"reaches", link.reaches},
          {"atomics", link.has_atomics},
          {"bytes_per_second", rate}};
}

Json json_of(const Topology& topology) {
  Json rows = Json::array(), reason;
  for (const std::vector<GpuLink>& links : topology.links) {
    Json& row = rows.emplace_back(Json::array());
    for (const GpuLink& link : links) row.push_back(json_of(link));
  }
  if (!topology.why_not_nvml.empty()) reason = topology.why_not_nvml;
  return {{"source", topology.source},
          {"why_not_nvml", reason},
          {"links", rows},
          {"ring", topology.ring()}};
}

std::string text_of(const GpuLink& link) { return link.reaches ? link.name : link.name + " !"; }

// Each kind of link once, with what it means.
std::map<std::string, std::string> meanings(const Topology& topology) {
  std::map<std::string, std::string> all;
  for (const std::vector<GpuLink>& row : topology.links) {
    for (const GpuLink& link : row) {
      if (link.path == GpuLink::Path::same) continue;
      std::string& meaning = all[text_of(link)];
      meaning = runtime::path_text(link);
      if (link.bytes_per_second > 0) {
        meaning += fmt::format(", {:.0f} GB/s each way", link.bytes_per_second / 1e9);
      }
      if (!link.reaches) {
        meaning += "; the other's memory is not reached, copies go through the host's";
      } else if (!link.has_atomics) {
        meaning += "; no atomics";
      }
    }
  }
  return all;
}

void draw(const Topology& topology) {
  if (topology.gpus.size() < 2) return;
  fmt::print("links      by {}{}\n          ", topology.source,
             topology.why_not_nvml.empty() ? "" : " (" + topology.why_not_nvml + ")");
  for (std::size_t to = 0; to < topology.gpus.size(); ++to) fmt::print(" {:>7}", to);
  fmt::print("\n");
  for (std::size_t from = 0; from < topology.links.size(); ++from) {
    fmt::print("        {:>2}", from);
    for (const GpuLink& link : topology.links[from]) fmt::print(" {:>7}", text_of(link));
    fmt::print("  {}\n", topology.gpus[from].pci);
  }
  for (const auto& [name, meaning] : meanings(topology)) {
    fmt::print("           {:>7}: {}\n", name, meaning);
  }
  fmt::print("           ring: {}\n", fmt::join(topology.ring(), " "));
}

Json json_of(const runtime::CpuInfo& cpu, const compiler::Processor& processor) {
  Json quota;
  if (processor.quota > 0) quota = processor.quota;
  return {{"name", cpu.name},
          {"threads", cpu.threads},
          {"features", cpu.features},
          {"instruction_sets", processor.instruction_sets},
          {"instruction_set", processor.instruction_set},
          {"affinity", processor.affinity},
          {"quota", quota},
          {"used_threads", processor.threads},
          {"problems", processor.problems}};
}

// What the target cpu takes of it.
void print(const compiler::Processor& processor) {
  fmt::print("           instruction sets {}; in use {}\n",
             fmt::join(processor.instruction_sets, ", "),
             processor.instruction_set.empty() ? "none" : processor.instruction_set);
  fmt::print("           {} by affinity, {}; {}\n", counted(processor.affinity, "processor"),
             processor.quota == 0 ? "no quota" : fmt::format("{} by quota", processor.quota),
             processor.threads == 0 ? "no launch is possible"
                                    : "a launch takes " + counted(processor.threads, "thread"));
  for (const std::string& problem : processor.problems) {
    fmt::print("{}\n", escaped_lines(problem));
  }
}

Json json_of(const runtime::DoctorReport& report, const compiler::Processor& processor) {
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
  return {{"default_target", default_target()},
          {"cpu", json_of(report.cpu, processor)},
          {"compilers", compilers},
          {"gpus", gpus},
          {"topology", json_of(report.topology)},
          {"nvrtc", nvrtc},
          {"driver", driver},
          {"cache", report.cache_folder},
          {"missing", missing}};
}

}  // namespace

int doctor(const Request& request) {
  const runtime::DoctorReport report = runtime::examine_machine();
  const compiler::Processor processor = compiler::examine_processor();
  const int status = processor.problems.empty() ? 0 : static_cast<int>(ErrorKind::usage);
  if (request.json) {
    fmt::print("{}\n", json_text(json_of(report, processor)));
    return status;
  }
  fmt::print("cpu        {}, {} threads ({})\n", report.cpu.name, report.cpu.threads,
             fmt::join(report.cpu.features, ", "));
  print(processor);
  for (const runtime::CompilerInfo& compiler : report.compilers) {
    fmt::print("compiler   {} {} ({})\n", compiler.name, compiler.version,
               escaped_lines(compiler.path));
  }
  if (report.driver_cuda_version) {
    fmt::print("driver     {} (CUDA {})\n", report.driver_version.value_or("unknown"),
               *report.driver_cuda_version);
  }
  if (report.nvrtc) {
    fmt::print("NVRTC      {} ({})\n", report.nvrtc->version, escaped_lines(report.nvrtc->path));
  }
  for (const runtime::DeviceInfo& gpu : report.gpus) {
    fmt::print("GPU        {} ({}), {} multiprocessors, {:.0f} GB\n", gpu.name, gpu.arch(),
               gpu.multiprocessors, static_cast<double>(gpu.memory_bytes) / 1e9);
  }
  draw(report.topology);
  fmt::print("target     {}, where none is named\n", default_target());
  const std::string& unusable = report.cache_unusable;
  fmt::print("cache      {}\n", report.cache_folder.empty()
                                    ? "none: " + unusable
                                    : escaped_lines(report.cache_folder) +
                                          (unusable.empty() ? "" : ", not used: " + unusable));
  for (const runtime::MissingPart& part : report.missing) {
    fmt::print("missing    {}\n           for {}\n           fix: {}\n", escaped_lines(part.what),
               part.needed_for, escaped_lines(part.how_to_get_it));
  }
  return status;
}

}  // namespace tilewright::tools
