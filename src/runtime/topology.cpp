#include "runtime/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "runtime/nvml.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace runtime {
namespace {

using Path = GpuLink::Path;

constexpr unsigned kMostLinks = 36;  // of one GPU; NVML refuses those that are not there
constexpr int kAccessSupported = 2, kAtomicsSupported = 3;

struct PcieLevel {
  int level;
  const char* name;
  const char* meaning;
};
// NVML's levels of the nearest common ancestor.
constexpr PcieLevel kPcieLevels[] = {{0, "PIX", "on one board"},
                                     {10, "PIX", "behind one switch"},
                                     {20, "PXB", "behind several switches"},
                                     {30, "PHB", "behind one CPU's bridge"},
                                     {40, "NODE", "behind several bridges of one CPU"},
                                     {50, "SYS", "across CPUs"}};

// A lane's data each way by generation, without what the code adds.
constexpr double kLaneBytes[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};

// The same of a link of NVLink, by compute capability: virtual machines often hide it from NVML.
struct NvlinkOf {
  int major, minor;
  double bytes;
};
constexpr NvlinkOf kNvlinks[] = {{7, 0, 25e9}, {8, 0, 25e9}, {9, 0, 25e9}, {10, 0, 50e9}};

// A GPU as CUDA and, where it is known, NVML have it.
struct Found {
  cuda::Device handle = 0;
  GpuPlace place;
  PciPlace pci;
  Nvml::Device nvml = nullptr;
  int switch_links = 0;
  std::vector<PciPlace> linked;  // of each link to another GPU
  double link_bytes = 0;         // of data in one of these each way; 0: nobody says
};

int attribute(const CudaDriver& driver, cuda::Device device, cuda::DeviceAttribute which) {
  int value = 0;
  check_cuda(driver, driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

std::string uuid_of(const CudaDriver& driver, cuda::Device device) {
  std::array<unsigned char, 16> bytes = {};
  check_cuda(driver,
             driver_function<cuda::Result(void*, cuda::Device)>(driver, "cuDeviceGetUuid_v2")(
                 bytes.data(), device),
             "cuDeviceGetUuid");
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", begins_group ? "-" : "", bytes[i]);
  }
  return text;
}

Found find_gpu(const CudaDriver& driver, int ordinal) {
  Found found;
  check_cuda(driver, driver.cuDeviceGet(&found.handle, ordinal), "cuDeviceGet");
  char name[256] = {};
  check_cuda(driver, driver.cuDeviceGetName(name, sizeof name, found.handle), "cuDeviceGetName");
  const auto place = [&](cuda::DeviceAttribute which) {
    return static_cast<unsigned>(attribute(driver, found.handle, which));
  };
  found.pci = {place(cuda::kPciDomain), place(cuda::kPciBus), place(cuda::kPciDevice)};
  found.place = {name, uuid_of(driver, found.handle), found.pci.text()};
  return found;
}

// NVML counts what the code adds to data: 64 bits are sent as 66 up to NVLink 3, and 16 as 17 since
// then, at 26.6 GB/s and more.
double data_of(double signals) { return signals > 26e9 ? signals * 16 / 17 : signals * 64 / 66; }

double link_bytes(const CudaDriver& driver, const Nvml& nvml, const Found& found, unsigned link) {
  if (const auto signals = nvml.nvlink_signals(found.nvml, link)) return data_of(*signals);
  const int major = attribute(driver, found.handle, cuda::kComputeCapabilityMajor);
  const int minor = attribute(driver, found.handle, cuda::kComputeCapabilityMinor);
  for (const NvlinkOf& known : kNvlinks) {
    if (known.major == major && known.minor == minor) return known.bytes;
  }
  return 0;
}

void ask_nvml(const CudaDriver& driver, const Nvml& nvml, Found& found) {
  found.nvml = nvml.find(found.place.uuid, found.pci);
  for (unsigned link = 0; found.nvml != nullptr && link < kMostLinks; ++link) {
    PciPlace remote;
    const Nvml::Remote kind = nvml.remote(found.nvml, link, remote);
    if (kind != Nvml::Remote::none && found.link_bytes == 0) {
      found.link_bytes = link_bytes(driver, nvml, found, link);
    }
    switch (kind) {
      case Nvml::Remote::nvswitch:
        ++found.switch_links;
        break;
      case Nvml::Remote::gpu:
        found.linked.push_back(remote);
        break;
      case Nvml::Remote::none:
      case Nvml::Remote::other:
        break;
    }
  }
}

// Those to an NVSwitch lead to every GPU that has such links.
int links_between(const Found& from, const Found& to) {
  const auto direct = std::count(from.linked.begin(), from.linked.end(), to.pci);
  return static_cast<int>(direct) + std::min(from.switch_links, to.switch_links);
}

double pcie_bytes(const Nvml& nvml, const Found& found) {
  const auto link = nvml.pcie(found.nvml);
  if (!link || link->generation >= std::size(kLaneBytes)) return 0;
  return kLaneBytes[link->generation] * link->width;
}

// False where NVML does not know both GPUs.
bool describe(const Nvml& nvml, const Found& from, const Found& to, GpuLink& link) {
  if (from.nvml == nullptr || to.nvml == nullptr) return false;
  link.nvlinks = links_between(from, to);
  if (link.nvlinks > 0) {
    link.path = Path::nvlink;
    link.name = fmt::format("NV{}", link.nvlinks);
    link.bytes_per_second = link.nvlinks * std::min(from.link_bytes, to.link_bytes);
    return true;
  }
  const auto level = nvml.common_ancestor(from.nvml, to.nvml);
  for (const PcieLevel& known : kPcieLevels) {
    if (level && known.level == *level) link.name = known.name;
  }
  link.path = level ? Path::pcie : Path::unknown;
  link.bytes_per_second = std::min(pcie_bytes(nvml, from), pcie_bytes(nvml, to));
  return true;
}

// What the driver alone says. PCIe has no atomics of peers on the machines that NVIDIA supports.
void describe_by_driver(GpuLink& link) {
  if (!link.reaches) return;
  link.path = link.has_atomics ? Path::nvlink : Path::pcie;
  link.name = link.has_atomics ? "NV" : "PCIe";
}

bool peer_attribute(const CudaDriver& driver, int which, const Found& from, const Found& to) {
  int value = 0;
  using Function = cuda::Result(int*, int, cuda::Device, cuda::Device);
  check_cuda(driver,
             driver_function<Function>(driver, "cuDeviceGetP2PAttribute")(&value, which,
                                                                          from.handle, to.handle),
             "cuDeviceGetP2PAttribute");
  return value != 0;
}

GpuLink same_gpu() {
  GpuLink link;
  link.path = Path::same;
  link.name = "X";
  link.reaches = link.has_atomics = true;
  return link;
}

}  // namespace

Topology find_topology() {
  const CudaDriver& driver = cuda_driver();
  std::vector<Found> found;
  for (int i = 0, count = runtime::Device::count(); i < count; ++i) {
    found.push_back(find_gpu(driver, i));
  }
  Topology all;
  const std::optional<Nvml> nvml = Nvml::open(&all.why_not_nvml);
  bool is_known = nvml.has_value();
  for (Found& gpu : found) {
    if (nvml) ask_nvml(driver, *nvml, gpu);
    all.gpus.push_back(gpu.place);
  }
  for (const Found& from : found) {
    std::vector<GpuLink>& row = all.links.emplace_back();
    for (const Found& to : found) {
      if (&from == &to) {
        row.push_back(same_gpu());
        continue;
      }
      GpuLink& link = row.emplace_back();
      link.reaches = peer_attribute(driver, kAccessSupported, from, to);
      link.has_atomics = link.reaches && peer_attribute(driver, kAtomicsSupported, from, to);
      if (nvml && describe(*nvml, from, to, link)) continue;
      describe_by_driver(link);
      is_known = false;
    }
  }
  if (nvml && !is_known) all.why_not_nvml = "NVML does not know all GPUs of this process";
  all.source = is_known ? "NVML " + nvml->driver_version().value_or("of an unknown version")
                        : "the driver's peer attributes";
  if (is_known) all.why_not_nvml.clear();
  return all;
}

std::string path_text(const GpuLink& link) {
  switch (link.path) {
    case Path::same:
      return "the same GPU";
    case Path::nvlink:
      return link.nvlinks == 0
                 ? "by NVLink"
                 : fmt::format("by NVLink, {} link{}", link.nvlinks, link.nvlinks == 1 ? "" : "s");
    case Path::pcie:
      break;
    case Path::unknown:
      return "in a way that neither NVML nor the driver says";
  }
  for (const PcieLevel& known : kPcieLevels) {
    if (link.name == known.name) return fmt::format("by PCIe {} ({})", known.meaning, known.name);
  }
  return "by PCIe";
}

}  // namespace runtime

namespace {

// Comparable: what is reached comes before what is not, then the faster, then NVLink.
struct Speed {
  bool reaches;
  double bytes_per_second;
  bool is_nvlink;
  auto operator<=>(const Speed&) const = default;
};

Speed speed_of(const GpuLink& link) {
  return {link.reaches, link.bytes_per_second, link.path == GpuLink::Path::nvlink};
}

Speed slowest_step(const Topology& topology, const std::vector<int>& ring) {
  Speed slowest = speed_of(topology.link(ring.back(), ring.front()));
  for (std::size_t i = 0; i + 1 < ring.size(); ++i) {
    slowest = std::min(slowest, speed_of(topology.link(ring[i], ring[i + 1])));
  }
  return slowest;
}

// Each GPU's nearest that has no place yet.
std::vector<int> greedy_ring(const Topology& topology, std::size_t count) {
  std::vector<int> ring = {0};
  while (ring.size() < count) {
    for (const int next : topology.nearest(ring.back())) {
      if (std::find(ring.begin(), ring.end(), next) != ring.end()) continue;
      ring.push_back(next);
      break;
    }
  }
  return ring;
}

}  // namespace

const GpuLink& Topology::link(int from, int to) const {
  const int count = static_cast<int>(gpus.size());
  for (const int gpu : {from, to}) {
    if (gpu >= 0 && gpu < count) continue;
    Diagnostic({}, fmt::format("the link from GPU {} to GPU {}, and this process sees {} GPU{}",
                               from, to, count, count == 1 ? "" : "s"))
        .fix("numbers below that; CUDA_VISIBLE_DEVICES may hide others")
        .raise();
  }
  return links[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

std::vector<int> Topology::nearest(int from) const {
  link(from, from);  // refuses a wrong number
  const int count = static_cast<int>(gpus.size());
  std::vector<int> others;
  for (int distance = 1; distance < count; ++distance) others.push_back((from + distance) % count);
  std::stable_sort(others.begin(), others.end(), [&](int one, int other) {
    return speed_of(link(from, one)) > speed_of(link(from, other));
  });
  return others;
}

std::vector<int> Topology::ring() const {
  constexpr std::size_t kAllAreTried = 8;  // 5,040 rings
  if (gpus.empty()) return {};
  if (gpus.size() > kAllAreTried) return greedy_ring(*this, gpus.size());
  std::vector<int> ring(gpus.size());
  std::iota(ring.begin(), ring.end(), 0);
  std::vector<int> best = ring;
  while (std::next_permutation(ring.begin() + 1, ring.end())) {
    if (slowest_step(*this, ring) > slowest_step(*this, best)) best = ring;
  }
  return best;
}

const Topology& topology() {
  // Never destroyed: it may be asked while a program ends.
  static const auto* const found = new Topology(runtime::find_topology());
  return *found;
}

}  // namespace tilewright
