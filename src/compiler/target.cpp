#include "compiler/target.h"

#include <fmt/format.h>

#include "runtime/device.h"
#include "support/diagnostic.h"

namespace tilewright::compiler {
namespace {

constexpr std::string_view kArchitecture = "sm_90a";
constexpr std::string_view kSimulated = "sim:sm_90a";
constexpr std::string_view kPasses = "passes:sm_90a";

[[noreturn]] void unavailable(const std::string& message, const std::string& fix) {
  Diagnostic({}, message, ErrorKind::unavailable).fix(fix).raise();
}

}  // namespace

Target parse_target(std::string_view name, int device) {
  const std::string text(name);
  if (name == "interpreter") return {Target::Kind::interpreter, text, ""};
  if (name == kSimulated) return {Target::Kind::simulator, text, std::string(kArchitecture)};
  if (name == kPasses) return {Target::Kind::passes, text, std::string(kArchitecture)};
  if (name == kArchitecture) return {Target::Kind::architecture, text, text};
  if (name == "cuda") {
    const runtime::DeviceInfo& gpu = runtime::Device::get(device).info();
    if (gpu.arch() != kArchitecture) {
      unavailable(fmt::format("GPU {} is a {} ({}), and this version compiles for {}", device,
                              gpu.name, gpu.arch(), kArchitecture),
                  "use a Hopper GPU, or --target interpreter");
    }
    return {Target::Kind::cuda, text, gpu.arch()};
  }
  if (name == "cpu" || name == "sm_100a" || name == "sm_103a" || name == "sm_110a") {
    unavailable(fmt::format("target {} is not available in this version", name),
                fmt::format("use interpreter, cuda or {}", kArchitecture));
  }
  Diagnostic({}, fmt::format("there is no target '{}'", name))
      .fix(fmt::format("use one of: interpreter, {}, cuda, {}, {}", kSimulated, kArchitecture,
                       kPasses))
      .raise();
}

}  // namespace tilewright::compiler
