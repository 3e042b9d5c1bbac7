#include "target/devices.h"

#include <algorithm>

#include "support/diagnostic.h"

namespace tilewright::target {
namespace {

// Measured on an H200. Fitted: with these the model comes closest to 315 measurements of gemm's
// variants (docs/schedules.md).
constexpr Device::Reached kReachedByH200 = {
    .clock = 1.75e9,
    .product_clock = 1.53e9,  // of random numbers: 1.47 to 1.56
    .product_share = 0.95,    // fitted
    .l2_bytes = 56,           // gemm 8192^3 takes 41 in the time that docs/log has for it
    .remote_bytes = 2.5,      // fitted
    .memory_bytes = 3.5e12,   // fitted
    .launch_seconds = 6e-6,   // fitted
};

// Measured on two H200 with 18 links of NVLink between them, both directions busy.
constexpr Link kNvlink18 = {
    .stored = 365e9,
    .reduced = 328e9,
    .loaded = 335e9,
    .copied = 391e9,
    .sent = 15,
    .arrival = 0.3e-6,  // a tile's way less its release, its signal and the peer's load of it
    .answer = 0.85e-6,
    .word = 0.76e-6,
    .release = 0.64e-6,  // a word that is released comes 1.40 after
    .engine_start = 2.7e-6,
    .stream_word = 2.8e-6,
    .stream_wait = 5e-6,  // kernels that poll are 5 to 8 faster
    .launch = 1.5e-6,
};

Device h200() {
  Device device;
  device.name = "H200 SXM";
  device.target = "sm_90a";
  device.source = "NVIDIA H200 data sheet";
  device.multiprocessors = 132;
  device.clock = 1.83e9;  // by which the peak of 16-bit products is 132 x 4096 operations a cycle
  device.memory_bytes = 4.8e12;
  device.peer_bytes = 450e9;
  device.link = kNvlink18;
  device.l2_size = 50 << 20;
  device.half_flops = 989.4e12;
  device.quarter_flops = 1978.9e12;
  device.single_flops = 66.9e12;
  device.reached = kReachedByH200;
  return device;
}

// The same chip with other memory. Nothing was fitted on it: of its memory it is taken to reach the
// share that an H200 reaches.
Device h100() {
  Device device = h200();
  device.name = "H100 SXM";
  device.source = "NVIDIA H100 data sheet";
  device.memory_bytes = 3.35e12;
  device.reached.memory_bytes = kReachedByH200.memory_bytes / h200().memory_bytes * 3.35e12;
  return device;
}

}  // namespace

double Device::flops(DType dtype) const {
  switch (size_of(dtype)) {
    case 1:
      return quarter_flops;
    case 2:
      return half_flops;
    default:
      return single_flops;
  }
}

const std::vector<Device>& devices() {
  static const std::vector<Device> all = {h200(), h100()};
  return all;
}

const Device& device_of(std::string_view target) {
  const auto found = std::find_if(devices().begin(), devices().end(),
                                  [&](const Device& device) { return device.target == target; });
  if (found != devices().end()) return *found;
  Diagnostic({}, "no figures of a device of " + std::string(target) + " are known")
      .fix("add one to src/target/devices.cpp")
      .raise();
}

}  // namespace tilewright::target
