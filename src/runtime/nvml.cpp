#include "runtime/nvml.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace tilewright::runtime {
namespace {

// The part of NVML's binary interface that is called here, by nvml.h of CUDA 12.0 and later.
using Result = int;
constexpr Result kSuccess = 0;
constexpr int kActive = 1;
constexpr unsigned kRemoteGpu = 0, kRemoteSwitch = 2;
// Megabytes a second each way: of any active link, and, by newer drivers, of the link in `scope`.
constexpr unsigned kFieldNvlinkSpeed = 90, kFieldSpeedOfLink = 164;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type;
  Result result;
  union {
    double real;
    unsigned small;
    unsigned long long large;
  } value;
};

// A driver may lack a function: the answer is then that it does not know.
template <typename... Arguments>
bool ask(const DynamicLibrary& library, const char* symbol, Arguments... arguments) {
  Result (*function)(Arguments...) = nullptr;
  return library.bind(function, symbol) && function(arguments...) == kSuccess;
}

}  // namespace

std::string PciPlace::text() const {
  return fmt::format("{:08x}:{:02x}:{:02x}.0", domain, bus, device);
}

std::optional<Nvml> Nvml::open(std::string* why) {
  const char* const chosen = std::getenv("TILEWRIGHT_NVML");
  const std::string path = chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
  Nvml nvml;
  nvml.library_ = DynamicLibrary::try_open(path, why);
  if (!nvml.library_) return std::nullopt;
  nvml.is_started_ = ask(nvml.library_, "nvmlInit_v2");
  if (nvml.is_started_) return nvml;
  *why = nvml.library_.path() + " does not start";
  return std::nullopt;
}

Nvml::Nvml(Nvml&& other) noexcept
    : library_(std::move(other.library_)), is_started_(std::exchange(other.is_started_, false)) {}

Nvml::~Nvml() {
  if (is_started_) ask(library_, "nvmlShutdown");
}

std::optional<std::string> Nvml::driver_version() const {
  char text[81] = {};
  if (!ask(library_, "nvmlSystemGetDriverVersion", &text[0], unsigned{sizeof text})) {
    return std::nullopt;
  }
  return text;
}

Nvml::Device Nvml::find(const std::string& uuid, const PciPlace& place) const {
  Device device = nullptr;
  const std::string at = place.text();
  if (ask(library_, "nvmlDeviceGetHandleByUUID", uuid.c_str(), &device)) return device;
  if (ask(library_, "nvmlDeviceGetHandleByPciBusId_v2", at.c_str(), &device)) return device;
  return nullptr;
}

Nvml::Remote Nvml::remote(Device device, unsigned link, PciPlace& place) const {
  int state = 0;
  unsigned type = 0;
  if (!ask(library_, "nvmlDeviceGetNvLinkState", device, link, &state) || state != kActive) {
    return Remote::none;
  }
  if (!ask(library_, "nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &type)) {
    return Remote::other;
  }
  if (type == kRemoteSwitch) return Remote::nvswitch;
  PciInfo info = {};
  if (type != kRemoteGpu ||
      !ask(library_, "nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &info)) {
    return Remote::other;
  }
  place = {info.domain, info.bus, info.device};
  return Remote::gpu;
}

std::optional<double> Nvml::nvlink_signals(Device device, unsigned link) const {
  for (const unsigned field : {kFieldNvlinkSpeed, kFieldSpeedOfLink}) {
    FieldValue value = {};
    value.field = field;
    if (field == kFieldSpeedOfLink) value.scope = link;
    const bool is_answered = ask(library_, "nvmlDeviceGetFieldValues", device, 1, &value);
    if (is_answered && value.result == kSuccess && value.value.small > 0) {
      return 1e6 * value.value.small;
    }
  }
  return std::nullopt;
}

std::optional<int> Nvml::common_ancestor(Device one, Device other) const {
  int level = 0;
  if (!ask(library_, "nvmlDeviceGetTopologyCommonAncestor", one, other, &level)) {
    return std::nullopt;
  }
  return level;
}

std::optional<Nvml::PcieLink> Nvml::pcie(Device device) const {
  PcieLink link = {};
  // What it is now falls while nothing is to be done.
  if (!ask(library_, "nvmlDeviceGetMaxPcieLinkGeneration", device, &link.generation) ||
      !ask(library_, "nvmlDeviceGetMaxPcieLinkWidth", device, &link.width)) {
    return std::nullopt;
  }
  return link;
}

}  // namespace tilewright::runtime
