#include <fmt/format.h>

#include "common/error_text.h"
#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MachineReport run_control(const std::string& text, Tensors tensors, std::uint64_t seed = 0) {
  MachineOptions options;
  options.seed = seed;
  options.control_only = true;
  return run(text, tensors, options);
}

TEST(ControlOnly, ExecutesTheSameInstructionsAndLeavesOutputsAlone) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    GemmTensors with(128, 256, 256), without(128, 256, 256);
    const MachineReport full = run_seed(gemm_text(), {&with.a, &with.b, &with.c}, seed);
    const MachineReport control =
        run_control(gemm_text(), {&without.a, &without.b, &without.c}, seed);
    ASSERT_TRUE(full.ok() && control.ok()) << first_message(full) << first_message(control);
    EXPECT_EQ(control.operations, full.operations);
    EXPECT_EQ(control.instructions, full.instructions);
    for (const std::byte byte : without.c.bytes) ASSERT_EQ(byte, std::byte{0xff});
  }
}

TEST(ControlOnly, FindsWhatTheFullSimulationFinds) {
  const std::pair<const char*, const char*> faults[] = {
      {"yield %50, %52", "yield %50, %44"},
      {"      wgmma_wait %61 {count = 0}\n", ""},
      {"      wgmma_fence %61\n", ""},
      {"      mbarrier_wait %14, %65, %66\n", ""},
      {"{bytes = 24576}", "{bytes = 24592}"},
      {"box = [64, 64], swizzle = 128", "box = [64, 64], swizzle = 64"},
      {"%25: i32 = constant {value = 8192}", "%25: i32 = constant {value = 24576}"},
  };
  for (const auto& [from, to] : faults) {
    const std::string text = changed(gemm_text(), from, to);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      GemmTensors tensors(64, 128, 512);
      const MachineReport expected = run_seed(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
      const MachineReport found = run_control(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
      ASSERT_FALSE(expected.ok()) << from;
      ASSERT_FALSE(found.ok()) << from;
      EXPECT_EQ(found.faults[0].message, expected.faults[0].message);
      EXPECT_EQ(found.faults[0].missing, expected.faults[0].missing);
    }
  }
}

// The GEMM, whose result is only stored if any of the 64 x `register_count` values of `values` is
// positive.
std::string conditional_text(const std::string& values) {
  std::string text = changed(gemm_text(), "    store_registers",
                             values +
                                 "    %92: bool = any_register %91\n"
                                 "    if_then %92 () {\n    store_registers");
  return changed(text, "w:4@0:16]}\n    yield\n",
                 "w:4@0:16]}\n    yield\n    } () {\n    yield\n    }\n    yield\n");
}

std::int64_t stores(const MachineReport& report) {
  const auto found = report.instructions.find("store_registers");
  return found == report.instructions.end() ? 0 : found->second;
}

// Rows of the tile are 0 to 63: none is as large as 64, and some are as large as 63, in one warp.
TEST(ControlOnly, ComputesWhatConditionsNeed) {
  for (const auto& [limit, expected] : {std::pair(63, 0), std::pair(62, 1), std::pair(-1, 4)}) {
    const std::string text = conditional_text(
        fmt::format("    %89: registers<i32, 64> = registers {{name = \"row\"}}\n"
                    "    coordinate %89 {{axis = 0, layout = "
                    "register_layout[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|w:4@0:16]}}\n"
                    "    %90: i32 = constant {{value = {}}}\n"
                    "    %91: registers<bool, 64> = registers {{name = \"large\"}}\n"
                    "    compute %91, %90, %89 {{function = lt, maps = maps[[], [1:64:1]]}}\n",
                    limit));
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      GemmTensors tensors(64, 128, 64);
      const MachineReport report = run_control(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
      ASSERT_TRUE(report.ok()) << first_message(report);
      EXPECT_EQ(stores(report), expected);
    }
  }
}

TEST(ControlOnly, DrawsConditionsOnProducts) {
  const std::string text = conditional_text(
      "    %90: f32 = constant {value = 1000000.0}\n"
      "    %91: registers<bool, 64> = registers {name = \"large\"}\n"
      "    compute %91, %90, %61 {function = lt, maps = maps[[], [1:64:1]]}\n");
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    GemmTensors tensors(64, 128, 64);
    const MachineReport full = run_seed(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
    ASSERT_TRUE(full.ok()) << first_message(full);
    EXPECT_EQ(stores(full), 0) << "no sum is so large";
    const MachineReport report = run_control(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
    ASSERT_TRUE(report.ok()) << first_message(report);
    const MachineReport again = run_control(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
    EXPECT_EQ(stores(report), stores(again)) << "drawn from the seed";
    seen.insert(stores(report));
  }
  EXPECT_GE(seen.size(), 3u) << "each of four warps draws for itself";
}

TEST(ControlOnly, RefusesIndicesThatTheKernelComputes) {
  const std::string text = R"(kernel "computed_index" machine
out Y: i32[32] = %1
grid (1)
threads 32
shared_bytes 0
body () {
  %20: i32 = constant {value = 0}
  %21: i32 = constant {value = 32}
  %22: registers<i32, 1> = registers {name = "lane"}
  coordinate %22 {axis = 0, layout = register_layout[32|l:32@0:1]}
  store_registers %1, %22, %20, %21 {sizes = [32], layout = register_layout[32|l:32@0:1]}
  %23: i32 = load_index %1, %20
}
)";
  MachineTensor y("Y", DType::i32, {32});
  ASSERT_TRUE(run(text, {&y}).ok());
  EXPECT_THAT(test::usage_error_of([&] { run_control(text, {&y}); }),
              AllOf(HasSubstr("load_index"), HasSubstr("Y is written from registers")));
}

}  // namespace
}  // namespace tilewright::simulator
