// A management library of four GPUs that are not there. A device's handle is its number plus one;
// its unique name and its place on PCIe are those that the fake driver gives it.

#include "fake_nvml/fake_nvml.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
FakeNvmlState fake_nvml_state = {};
}

namespace {

constexpr int kGpus = 4, kNotFound = 6, kNotSupported = 3;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};

int number_of(const void* device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

int find(void** device, int number) {
  if (number < 0 || number >= kGpus - fake_nvml_state.hidden) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number + 1));
  return 0;
}

// A device's links: first those to NVSwitches, then those to each GPU. The GPU's number, kGpus for
// a switch, or -1 for no link.
int remote_of(const void* device, unsigned link) {
  const int number = number_of(device);
  int left = static_cast<int>(link) - fake_nvml_state.switch_links[number];
  if (left < 0) return kGpus;
  for (int other = 0; other < kGpus; ++other) {
    left -= fake_nvml_state.direct_links[number][other];
    if (left < 0) return other;
  }
  return -1;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++fake_nvml_state.starts;
  // For tests that run programs: links of each GPU to switches.
  if (const char* const links = std::getenv("FAKE_NVML_LINKS")) {
    for (int& of_gpu : fake_nvml_state.switch_links) of_gpu = std::atoi(links);
    fake_nvml_state.link_megabytes = 26562;
  }
  return fake_nvml_state.init_result;
}
int nvmlShutdown() {
  ++fake_nvml_state.ends;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  unsigned number = 0;
  if (fake_nvml_state.knows_no_uuid || std::sscanf(uuid, "GPU-%2x", &number) != 1) return kNotFound;
  return find(device, static_cast<int>(number));
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* place, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(place, "%8x:%2x:", &domain, &bus) != 2) return kNotFound;
  return find(device, static_cast<int>(bus) - 0x10);
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  *active = remote_of(device, link) >= 0;
  return *active != 0 ? 0 : kNotSupported;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, unsigned* type) {
  *type = remote_of(device, link) == kGpus ? 2 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* info) {
  std::memset(info, 0, sizeof *info);
  info->bus = 0x10 + static_cast<unsigned>(remote_of(device, link));
  return 0;
}
int nvmlDeviceGetFieldValues(void*, int, FieldValue* value) {
  constexpr unsigned kSpeedOfLinks = 90;
  value->result = value->field == kSpeedOfLinks ? 0 : kNotSupported;
  value->value = fake_nvml_state.link_megabytes;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int* level) {
  *level = fake_nvml_state.ancestor;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = fake_nvml_state.generation;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) {
  *width = fake_nvml_state.width;
  return 0;
}

}  // extern "C"
