#include "compiler/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "runtime/device.h"
#include "support/diagnostic.h"
#include "support/nearest_name.h"
#include "target/target.h"

namespace tilewright::compiler {
namespace {

// What may be asked of a machine that has a record, by what stands before its name.
struct Way {
  std::string_view prefix;
  Target::Kind kind;
};
constexpr Way kWays[] = {{"sim:", Target::Kind::simulator},
                         {"", Target::Kind::architecture},
                         {"passes:", Target::Kind::passes}};

// Machines without a record that people ask for.
struct Missing {
  std::string_view name, chips;
};
constexpr Missing kMissing[] = {{"sm_80", "A100, A30"},
                                {"sm_86", "A10, A40, GeForce RTX 30"},
                                {"sm_89", "L4, L40S, GeForce RTX 40"},
                                {"sm_90", "H100 and H200 without their own instructions"},
                                {"sm_103a", "B300, GB300"},
                                {"sm_120a", "GeForce RTX 50"}};

const target::Target* find_record(std::string_view name) {
  for (const target::Target* record : target::targets()) {
    if (record->name == name) return record;
  }
  return nullptr;
}

// "sm_90a (NVIDIA Hopper: H100, H200, GH200)"
std::string served() {
  std::vector<std::string> list;
  for (const target::Target* record : target::targets()) {
    if (record->printer.empty()) continue;  // simulated only
    list.push_back(fmt::format("{} ({})", record->name, record->chips));
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

std::vector<std::string> known_names() {
  std::vector<std::string> names = {"interpreter", "cpu"};
  for (const Way& way : kWays) {
    if (way.prefix.empty()) names.emplace_back("cuda");
    for (const target::Target* record : target::targets()) {
      names.push_back(std::string(way.prefix) + record->name);
    }
  }
  return names;
}

[[noreturn]] void unavailable(const std::string& message) {
  Diagnostic({}, message, ErrorKind::unavailable)
      .fix(fmt::format("use cpu, interpreter or sim:{}, which need no GPU",
                       target::targets().front()->name))
      .raise();
}

}  // namespace

Target parse_target(std::string_view name, int device) {
  const std::string text(name);
  if (name == "interpreter") return {Target::Kind::interpreter, text, ""};
  if (name == "cpu") return {Target::Kind::cpu, text, ""};
  if (name == "cuda") {
    const runtime::DeviceInfo& gpu = runtime::Device::get(device).info();
    if (find_record(gpu.arch()) == nullptr) {
      unavailable(fmt::format("GPU {} is a {} ({}), and this version compiles for {}", device,
                              gpu.name, gpu.arch(), served()));
    }
    return {Target::Kind::cuda, text, gpu.arch()};
  }
  for (const Way& way : kWays) {
    if (!name.starts_with(way.prefix)) continue;
    const std::string_view machine = name.substr(way.prefix.size());
    if (find_record(machine) != nullptr) return {way.kind, text, std::string(machine)};
    for (const Missing& missing : kMissing) {
      if (missing.name != machine) continue;
      unavailable(
          fmt::format("target {} is not available in this version: {} ({}) has no record; "
                      "these have: {}",
                      name, missing.name, missing.chips, served()));
    }
  }
  const std::vector<std::string> known = known_names();
  Diagnostic({}, fmt::format("there is no target '{}'{}", name, nearest_text(name, known)))
      .fix(fmt::format("use one of: {}", fmt::join(known, ", ")))
      .raise();
}

bool has_explicit_memories(const Target& target) {
  const target::Target* record = find_record(target.arch);
  return record != nullptr && record->core != nullptr;
}

std::string_view target_of_machine() {
  try {
    if (runtime::Device::count() > 0 && find_record(runtime::Device::get(0).info().arch())) {
      return "cuda";
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
  }
  return "cpu";
}

std::string default_arch() { return std::string(ir::default_target()); }

}  // namespace tilewright::compiler
