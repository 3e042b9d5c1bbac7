#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/dynamic_library.h"

struct nvmlDevice_st;

namespace tilewright::runtime {

// Where a device is on PCIe.
struct PciPlace {
  unsigned domain = 0, bus = 0, device = 0;
  bool operator==(const PciPlace&) const = default;
  std::string text() const;  // "00000000:1b:00.0"
};

// The NVIDIA management library, loaded where somebody asks and closed again. What it does not know
// of a device is nothing, and no error.
class Nvml {
 public:
  using Device = nvmlDevice_st*;

  // Nothing where it is not there or does not start; `why` then says so. $TILEWRIGHT_NVML, when
  // set, is the only place that is looked at.
  static std::optional<Nvml> open(std::string* why);
  ~Nvml();
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) = delete;

  std::optional<std::string> driver_version() const;  // of the kernel module: "580.65.06"
  // By its unique name, else by its place: the numbers of NVML are not those of CUDA. Null for
  // none.
  Device find(const std::string& uuid, const PciPlace& place) const;

  enum class Remote { none, gpu, other, nvswitch };
  // What an active link leads to, and, of a GPU, where that is.
  Remote remote(Device device, unsigned link, PciPlace& place) const;
  // What an active link carries each way at most, in bytes a second, as its signals.
  std::optional<double> nvlink_signals(Device device, unsigned link) const;
  // How far two devices are apart on PCIe: 0 (the same board) to 50 (other CPUs).
  std::optional<int> common_ancestor(Device one, Device other) const;
  struct PcieLink {
    unsigned generation, width;
  };
  std::optional<PcieLink> pcie(Device device) const;

 private:
  Nvml() = default;
  DynamicLibrary library_;
  bool is_started_ = false;
};

}  // namespace tilewright::runtime
