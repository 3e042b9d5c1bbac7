#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "simulator/machine_kernels.h"

// Litmus tests: small machine-form kernels for one rule of the machine each.
namespace tilewright::simulator {

struct LitmusSetup {
  int arrivals = 1;  // of the two barriers "bar"
  int threads = 128;
  int cluster = 1, grid = 1;
};

// Operations of its body.
inline const std::string kStore = "    shared_store %22, %0, %7\n";
inline const std::string kLoad = "    %60: i32 = shared_load %22, %0\n";
inline const std::string kArrive = "    mbarrier_arrive %20, %0\n";
inline const std::string kWait = "    mbarrier_wait %20, %0, %0\n";
inline const std::string kBulkWait = "    bulk_wait {count = 0}\n";

// `body` runs after these places are there, the barriers initialised, element i of "box" i, and
// "tile" filled by a copy of A that completed phase 0 of "loaded":
//   %0 to %9 their numbers, %10 true, %16 and %17 16 and 32
//   %20 bar: two mbarriers of `arrivals`; %21 loaded: two of one arrival
//   %22 box: i32[16]; %23 tile: bf16[16, 16], rows of 32 bytes; %24 words: f32[128]
//   %25 A's map, %26 Y's: boxes {16, 16}; %90 X: i32[64]; %91 A, %92 Y: bf16[16, 16]
//   %30 values: bf16, 8 a lane (16 x 16 of a warp); %31 word: f32, 4 a lane
//   %32 P: a product's A fragment; %33 S: its accumulator of 64 x 16
inline std::string litmus(const std::string& body, LitmusSetup setup = {}) {
  std::string text =
      "kernel \"litmus\" machine\ninout X: i32[64] = %90\nin A: bf16[16, 16] = %91\n"
      "inout Y: bf16[16, 16] = %92\n";
  text += fmt::format("grid ({})\n", setup.grid * setup.cluster);
  if (setup.cluster > 1) text += fmt::format("cluster {}\n", setup.cluster);
  text += fmt::format("threads {}\nshared_bytes 1280\nbody () {{\n", setup.threads);
  text += fmt::format(
      R"(  %25: tensor_map = tensor_map %91 {{name = "A map", box = [16, 16], swizzle = 0}}
  %26: tensor_map = tensor_map %92 {{name = "Y map", box = [16, 16], swizzle = 0}}
  %20: mbarriers<2> = mbarriers {{name = "bar", arrivals = {0}, offset = 0}}
  %21: mbarriers<2> = mbarriers {{name = "loaded", arrivals = 1, offset = 16}}
  %22: shared<i32, 1x1x16> = shared {{name = "box", layout = shared_layout[1x16*4|16@1:4], stages = 1, offset = 128}}
  %23: shared<bf16, 1x16x16> = shared {{name = "tile", layout = shared_layout[16x16*2|16@0:32,16@1:2], stages = 1, offset = 256}}
  %24: shared<f32, 1x1x128> = shared {{name = "words", layout = shared_layout[1x128*4|128@1:4], stages = 1, offset = 768}}
  mbarrier_init %20 {{arrivals = {0}}}
  mbarrier_init %21 {{arrivals = 1}}
  fence_barrier_init
)",
      setup.arrivals);
  for (int i = 0; i < 10; ++i) text += fmt::format("  %{0}: i32 = constant {{value = {0}}}\n", i);
  text +=
      "  %10: bool = constant {value = 1}\n  %16: i32 = constant {value = 16}\n"
      "  %17: i32 = constant {value = 32}\n";
  for (int i = 0; i < 4; ++i) text += fmt::format("  shared_store %22, %{0}, %{0}\n", i);
  text += setup.cluster > 1 ? "  cluster_sync\n" : "  cta_sync\n";
  return text + R"(  mbarrier_expect_tx %21, %0 {bytes = 512}
  tma_load %25, %23, %0, %21, %0, %0, %0 {bytes = 512}
  mbarrier_wait %21, %0, %0
  %29: bf16 = constant {value = 1.0}
  %30: registers<bf16, 8> = registers {name = "values"}
  fill %30, %29
  %28: f32 = constant {value = 7.0}
  %31: registers<f32, 4> = registers {name = "word"}
  fill %31, %28
  %32: registers<bf16, 8> = registers {name = "P"}
  fill %32, %29
  %33: registers<f32, 8> = registers {name = "S"}
)" + body +
         "}\n";
}

inline std::string role(const char* name, int first_warp, int warps, const std::string& body) {
  return fmt::format(
      "  role {{name = \"{}\", first_warp = {}, warps = {}}} (%{}: i32) {{\n{}    "
      "yield\n  }}\n",
      name, first_warp, warps, 50 + first_warp, body);
}

// What the roles of many tests do.
inline std::string store_tile() {
  return "    store_matrix %30, %23, %0, %0 {register = 0, row_bytes = 32, column_bytes = 0, "
         "swizzle_divisor = 1, swizzle_mask = 0}\n";
}
inline std::string load_tile() {
  return "    load_matrix %30, %23, %0, %0 {register = 0, row_bytes = 32, column_bytes = 0, "
         "swizzle_divisor = 1, swizzle_mask = 0}\n";
}
inline std::string copy_tile_in() {
  return "    mbarrier_expect_tx %21, %1 {bytes = 512}\n"
         "    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512}\n";
}
inline std::string copy_tile_out() {
  return "    tma_store %26, %23, %0, %0, %0\n    bulk_commit\n";
}
inline std::string product() {
  return "    wgmma_rs %33, %32, %23, %0, %10 {n = 16, k = 16, descriptor_b = 2097216, "
         "register = 0, step_b = 0, transpose_b = 0}\n";
}

inline MachineReport run_litmus(const std::string& text, MachineOptions options = {}) {
  MachineTensor x("X", DType::i32, {64});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  MachineTensor a("A", DType::bf16, {16, 16}), y("Y", DType::bf16, {16, 16});
  a.randomise(1);
  y.randomise(2);
  return run(text, {&x, &a, &y}, options);
}

constexpr std::uint64_t kLitmusSeeds = 20;

inline void expect_clean(const std::string& text, MachineOptions options = {}) {
  ir::verify(ir::parse_text(text, "kernel.tw"));
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    ASSERT_TRUE(report.ok()) << "seed " << options.seed << ": " << first_message(report);
  }
}

// The line of the last occurrence: roles come last in a litmus test.
inline int last_line_of(const std::string& text, const std::string& passage) {
  const std::size_t at = text.rfind(passage);
  EXPECT_NE(at, std::string::npos) << passage;
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

struct Wanted {
  std::string kind;
  std::string one, other;            // passages of the two lines; `other` may be empty
  std::vector<std::string> missing;  // what is missing contains one of these
};

// On every schedule, whichever of the two accesses comes first in it.
inline void expect_fault(const std::string& text, const Wanted& wanted,
                         MachineOptions options = {}) {
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    ASSERT_FALSE(report.ok()) << "seed " << options.seed;
    const Fault& fault = report.faults[0];
    SCOPED_TRACE(fmt::format("seed {}: {}\n{}", options.seed, fault.message, fault.missing));
    ASSERT_EQ(fault.kind, wanted.kind);
    const std::multiset<int> found{fault.first.line, fault.second.line};
    if (wanted.other.empty()) {
      ASSERT_EQ(found.count(last_line_of(text, wanted.one)), 1u);
    } else {
      ASSERT_EQ(found, (std::multiset<int>{last_line_of(text, wanted.one),
                                           last_line_of(text, wanted.other)}));
    }
    ASSERT_TRUE(wanted.missing.empty() || std::any_of(wanted.missing.begin(), wanted.missing.end(),
                                                      [&](const std::string& each) {
                                                        return fault.missing.find(each) !=
                                                               std::string::npos;
                                                      }));
  }
}

}  // namespace tilewright::simulator
