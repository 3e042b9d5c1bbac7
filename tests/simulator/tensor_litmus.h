#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "simulator/machine_kernels.h"

// A machine-form kernel with products in tensor memory, of which litmus tests leave out or change a
// passage.
namespace tilewright::simulator::tensor_litmus {

// bf16, 128 x 64, both K-major; operands with a swizzle of 128 bytes, 1024 between 8 rows.
inline constexpr std::int64_t kInstruction = 0x08100490;
inline constexpr std::int64_t kDescriptor = 0x4000404000010000 >> 14;

inline std::string product(int step, const std::string& accumulate,
                           const std::string& address = "%40") {
  return fmt::format(
      "    tcgen05_mma_ss %5, {}, %1, %0, %2, %0, {} {{m = 128, n = 64, k = 16, instruction = {}, "
      "descriptor_a = {}, descriptor_b = {}, step_a = {}, step_b = {}}}\n",
      address, accumulate, kInstruction, kDescriptor, kDescriptor, 32 * step, 32 * step);
}

inline std::string products() {
  std::string text = product(0, "%11");
  for (int step = 1; step < 4; ++step) text += product(step, "%10");
  return text;
}

inline const std::string kAlloc = "    tcgen05_alloc %5, %3, %0\n";
inline const std::string kSecond =
    "    tcgen05_alloc %6, %3, %7\n    %45: i32 = shared_load %3, %7\n";
inline const std::string kDealloc = "    tcgen05_dealloc %5, %40\n";
inline const std::string kCommit = "    tcgen05_commit %24, %0\n";
inline const std::string kAwaited = "    mbarrier_wait %24, %0, %0\n";
inline const std::string kAfter = "    tcgen05_fence_after\n";
inline const std::string kBefore = "    tcgen05_fence_before\n";
inline const std::string kTensorLoad = "    tcgen05_ld %30, %5, %43 {count = 64, register = 0}\n";
inline const std::string kLoaded = "    tcgen05_wait_ld %30\n";
inline const std::string kWindow = "    %42: i32 = mul %41, %12\n";
inline const std::string kFreed = "    named_sync %0 {first = 2, threads = 160}\n";

// A warp multiplies A [128, 64] and B [64, 64]^T, and four read the result to Y. %0 to %9 are their
// numbers, %10 true, %11 false.
inline std::string kernel() {
  std::string text = R"(kernel "litmus" machine
target "sm_100a"
in A: bf16[128, 64] = %90
in B: bf16[64, 64] = %91
inout Y: f32[128, 64] = %92
grid (1)
threads 256
shared_bytes 24704
body () {
  %20: tensor_map = tensor_map %90 {name = "A map", box = [128, 64], swizzle = 128}
  %21: tensor_map = tensor_map %91 {name = "B map", box = [64, 64], swizzle = 128}
  %1: shared<bf16, 1x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %2: shared<bf16, 1x64x64> = shared {name = "b", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 16384}
  %3: shared<i32, 1x1x4> = shared {name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 24576}
  %23: mbarriers<2> = mbarriers {name = "loaded", arrivals = 1, offset = 24640}
  %24: mbarriers<2> = mbarriers {name = "done", arrivals = 1, offset = 24656}
  %5: tensor_memory<64> = tensor_memory {name = "d"}
  %6: tensor_memory<64> = tensor_memory {name = "other"}
  mbarrier_init %23 {arrivals = 1}
  mbarrier_init %24 {arrivals = 1}
  fence_barrier_init
  cta_sync
  %0: i32 = constant {value = 0}
  %7: i32 = constant {value = 1}
  %8: i32 = constant {value = 128}
  %9: i32 = constant {value = 64}
  %10: bool = constant {value = 1}
  %11: bool = constant {value = 0}
  %12: i32 = constant {value = 2097152}
  role {name = "multiply", first_warp = 4, warps = 1} (%50: i32) {
)";
  text += kAlloc;
  text += R"(    named_sync %0 {first = 1, threads = 160}
    %40: i32 = shared_load %3, %0
    mbarrier_expect_tx %23, %0 {bytes = 24576}
    tma_load %20, %1, %0, %23, %0, %0, %0 {bytes = 16384}
    tma_load %21, %2, %0, %23, %0, %0, %0 {bytes = 8192}
    mbarrier_wait %23, %0, %0
)";
  text += products() + kCommit + "    tcgen05_relinquish\n" + kFreed + kDealloc;
  text += R"(    yield
  }
  role {name = "read", first_warp = 0, warps = 4} (%51: i32) {
    %30: registers<f32, 64> = registers {name = "sums"}
    named_sync %0 {first = 1, threads = 160}
    %44: i32 = shared_load %3, %0
    %41: i32 = warp_index
)";
  text += kWindow + "    %43: i32 = add %44, %42\n" + kAwaited + kAfter + kTensorLoad + kLoaded +
          kBefore;
  text +=
      R"(    store_registers %92, %30, %0, %0, %8, %9 {sizes = [128, 64], layout = register_layout[128x64|r:64@1:1|l:32@0:1|w:4@0:32]}
)";
  return text + kFreed + "    yield\n  }\n}\n";
}

inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// A is copied to tensor memory, step by step, and multiplied from there.
inline std::string copied_kernel(const std::string& behind = "") {
  std::string text, freed = kDealloc + "    tcgen05_dealloc %6, %45\n";
  for (int step = 0; step < 4; ++step) {
    text += fmt::format(
        "    %{}: i32 = constant {{value = {}}}\n    %{}: i32 = add %45, %{}\n"
        "    tcgen05_cp %6, %{}, %1, %0 {{m = 128, row_bytes = 32, descriptor_a = {}, step_a = "
        "{}}}\n",
        60 + step, 8 * step, 70 + step, 60 + step, 70 + step, kDescriptor, 32 * step);
  }
  for (int step = 0; step < 4; ++step) {
    text += fmt::format(
        "    tcgen05_mma_ts %5, %40, %6, %{}, %2, %0, {} {{m = 128, n = 64, k = 16, instruction = "
        "{}, descriptor_b = {}, step_b = {}}}\n",
        70 + step, step == 0 ? "%11" : "%10", kInstruction, kDescriptor, 32 * step);
  }
  return changed(changed(kernel(), products(), kSecond + text + behind), kDealloc, freed);
}

struct Execution {
  MachineTensor a{"A", DType::bf16, {128, 64}}, b{"B", DType::bf16, {64, 64}},
      y{"Y", DType::f32, {128, 64}};
  MachineReport report;
  Execution() {
    a.randomise(1);
    b.randomise(2);
  }
  // With `options`, but for the seed.
  explicit Execution(const std::string& text, std::uint64_t seed = 0, MachineOptions options = {})
      : Execution() {
    ir::verify(ir::parse_text(text, "kernel.tw"));
    options.seed = seed;
    report = run(text, {&a, &b, &y}, options);
  }
};

}  // namespace tilewright::simulator::tensor_litmus
