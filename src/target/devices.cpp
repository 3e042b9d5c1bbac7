#include "target/devices.h"

#include <numeric>

#include "support/diagnostic.h"

namespace tilewright::target {
namespace {

// Measured on an H200. Fitted: with these the model comes closest to measurements of gemm's
// variants (docs/log/2026-11-27-cost-of-pauses.md, 2026-11-28-estimates-of-choices.md,
// 2026-11-28-estimates-of-ends-and-lines.md, 2026-11-28-estimates-and-the-clock.md,
// 2026-11-28-estimates-of-rows.md, 2026-11-28-waits-of-clusters.md).
constexpr Device::Reached kReachedByH200 = {
    .clock = 1.75e9,
    .product_clock = 1.53e9,  // of random numbers: 1.47 to 1.56
    .product_share = 0.96,    // fitted, as all that follow but memory_bytes
    .l2_bytes = 64,           // all that the port has
    .l2_idle = 0.48,
    .between_lines = 0.56,
    .between_sectors = 1.5,
    .written = 0.88,
    .written_between_sectors = 0.75,
    .shared_zero_bytes = 650,
    .power = 0.146,
    .slowing = 0.25,
    .slows_in = 1.6e-3,
    .remote_bytes = 14,
    .cluster_wait = 780,
    .cluster_wait_each = 40,
    .added_bytes = 16.5,  // measured: docs/log/2026-11-23-attention-backward-wide.md
    .turn = 4500,         // measured: docs/log/2026-11-28-turns-of-sums.md
    .scalar_latency = 7,
    .store_read_latency = 630,
    .stage_latency = 750,
    .product_wait = 29,
    .received_bytes = 90,
    .thread_store_bytes = 14,
    .cluster_seconds = 0.76e-6,
    .memory_bytes = 4.2e12,  // two rings of 96 KiB a multiprocessor that read alone
    .launch_seconds = 4.6e-6,
    .next_launch_seconds = 2e-6,
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

// Nothing has run on one. What kernels reach of it, and what goes between two, are taken to be the
// shares that an H200 reaches.
Device b200() {
  Device device;
  device.name = "B200";
  device.target = "sm_100a";
  device.source = "NVIDIA HGX B200 data sheet";
  device.has_run = false;
  device.multiprocessors = 148;
  device.clock = 1.86e9;  // by which the peak of 16-bit products is 148 x 8192 operations a cycle
  device.memory_bytes = 8e12;
  device.peer_bytes = 900e9;
  device.link = kNvlink18;
  for (double* rate : {&device.link.stored, &device.link.reduced, &device.link.loaded,
                       &device.link.copied, &device.link.sent}) {
    *rate *= 2;
  }
  device.l2_size = 126 << 20;  // two halves
  device.half_flops = 2250e12;
  device.quarter_flops = 4500e12;
  device.single_flops = 74e12;
  device.reached = kReachedByH200;
  device.reached.clock = device.reached.product_clock = device.clock;
  device.reached.memory_bytes = kReachedByH200.memory_bytes / h200().memory_bytes * 8e12;
  // Published measurement: 692.7 TB/s by tcgen05.ld alone, and less by what products read beside.
  device.reached.tensor_bytes = 2500;
  return device;
}

// As of a B200: nothing has run on one. It has no other GPU beside it: where programs are simulated
// on several, the links between them are those of a B200.
Device thor() {
  Device device = b200();
  device.name = "Jetson Thor T5000";
  device.target = "sm_110a";
  device.source = "NVIDIA Jetson Thor data sheet";
  device.multiprocessors = 20;
  device.clock = 1.575e9;
  device.memory_bytes = 273e9;
  device.peer_bytes = 0;
  device.l2_size = 32 << 20;
  device.half_flops = 258e12;  // of the data sheet's 517 TFLOP/s of 8-bit products
  device.quarter_flops = 517e12;
  device.single_flops = 8.1e12;
  device.reached.clock = device.reached.product_clock = device.clock;
  device.reached.memory_bytes = kReachedByH200.memory_bytes / h200().memory_bytes * 273e9;
  return device;
}

constexpr std::int64_t kLine = 128, kSector = 32;

// Of rows that follow each other, those that do not begin at a multiple of so many bytes.
double share_between(std::int64_t stride, std::int64_t bytes) {
  return 1 - static_cast<double>(std::gcd(stride, bytes)) / static_cast<double>(bytes);
}

}  // namespace

double Device::Reached::longer_in_rows(std::int64_t stride) const {
  return between_lines * share_between(stride, kLine) +
         between_sectors * share_between(stride, kSector);
}

double Device::Reached::written_in_rows(std::int64_t stride) const {
  return written * (1 + written_between_sectors * share_between(stride, kSector));
}

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
  static const std::vector<Device> all = {h200(), h100(), b200(), thor()};
  return all;
}

std::vector<const Device*> devices_of(std::string_view target) {
  std::vector<const Device*> found;
  for (const Device& device : devices()) {
    if (device.target == target) found.push_back(&device);
  }
  return found;
}

const Device& device_of(std::string_view target) {
  const std::vector<const Device*> found = devices_of(target);
  if (!found.empty()) return *found.front();
  Diagnostic({}, "no figures of a device of " + std::string(target) + " are known")
      .fix("add one to src/target/devices.cpp")
      .raise();
}

}  // namespace tilewright::target
