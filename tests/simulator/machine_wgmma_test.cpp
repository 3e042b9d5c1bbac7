#include <fmt/format.h>

#include "common/printing.h"
#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

using ::testing::HasSubstr;

struct Operand {
  DType dtype = DType::bf16;
  int swizzle = 128;  // bytes; 0: core matrices of 8 rows of 16 bytes
  bool mn_major = false;
};

// How a matrix of `rows` (M or N) by `k` elements is copied by TMA and described to wgmma, worked
// out by hand from the PTX tables.
struct Placement {
  int box_rows = 0, box_columns = 0;  // of one copy
  int copies = 0;                     // along the contiguous axis
  int copy_bytes = 0;
  std::int64_t descriptor = 0;
  std::vector<int> steps;  // byte offset of each k-step

  Placement(const Operand& operand, int rows, int k) {
    const int size = size_of(operand.dtype), span = operand.swizzle ? operand.swizzle : 16;
    const int lines = operand.mn_major ? k : rows, contiguous = operand.mn_major ? rows : k;
    box_rows = lines;
    box_columns = span / size;
    copies = contiguous * size / span;
    copy_bytes = lines * span;
    const int k_steps = k * size / 32;
    std::int64_t leading = 16, stride = 8 * span;
    if (operand.mn_major) {
      leading = copy_bytes;
      if (operand.swizzle == 0) std::swap(leading, stride);
      for (int i = 0; i < k_steps; ++i) steps.push_back(i * 16 * span);
    } else {
      if (operand.swizzle == 0) leading = copy_bytes;
      for (int i = 0; i < k_steps; ++i) {
        steps.push_back(i * 32 / span * copy_bytes + i * 32 % span);
      }
    }
    const std::int64_t mode = operand.swizzle == 128  ? 1
                              : operand.swizzle == 64 ? 2
                              : operand.swizzle == 32 ? 3
                                                      : 0;
    descriptor = (leading >> 4) << 2 | (stride >> 4) << 18 | mode << 48;
  }
};

std::string layout_text(int rows, int columns, int size) {
  return fmt::format("shared_layout[{0}x{1}*{2}|{0}@0:{3},{1}@1:{2}]", rows, columns, size,
                     columns * size);
}

constexpr int kM = 64, kN = 128, kK = 64;
constexpr int kAOffset = 0, kBOffset = 16384, kBarrier = 49152;

std::string copies_text(const Placement& placement, const char* map, const char* shared,
                        int& next) {
  std::string text;
  for (int i = 0; i < placement.copies; ++i) {
    const int offset = next++, column = next++;
    text += fmt::format("  %{}: i32 = constant {{value = {}}}\n", offset, i * placement.copy_bytes);
    text +=
        fmt::format("  %{}: i32 = constant {{value = {}}}\n", column, i * placement.box_columns);
    text += fmt::format("  tma_load {}, {}, %{}, %9, %20, %{}, %20 {{bytes = {}}}\n", map, shared,
                        offset, column, placement.copy_bytes);
  }
  return text;
}

// C {64, 128} = A {64, 64} B {64, 128} by one warpgroup.
std::string product_text(const Operand& a, const Operand& b) {
  const Placement place_a(a, kM, kK), place_b(b, kN, kK);
  const std::string dtype(name_of(a.dtype));
  const int size = size_of(a.dtype);
  const auto shape = [](const Operand& operand, int mn) {
    return operand.mn_major ? fmt::format("{}, {}", kK, mn) : fmt::format("{}, {}", mn, kK);
  };
  std::string text = fmt::format(
      R"(kernel "product" machine
in A: {0}[{1}] = %0
in B: {0}[{2}] = %1
out C: f32[64, 128] = %2
grid (1)
threads 128
shared_bytes 49160
body () {{
  %5: tensor_map = tensor_map %0 {{name = "A map", box = [{3}, {4}], swizzle = {5}}}
  %6: tensor_map = tensor_map %1 {{name = "B map", box = [{6}, {7}], swizzle = {8}}}
  %7: shared<{0}, 1x64x64> = shared {{name = "A", layout = {9}, stages = 1, offset = {10}}}
  %8: shared<{0}, 1x128x64> = shared {{name = "B", layout = {11}, stages = 1, offset = {12}}}
  %9: mbarriers<1> = mbarriers {{name = "full", arrivals = 1, offset = {13}}}
  mbarrier_init %9 {{arrivals = 1}}
  fence_barrier_init
  cta_sync
  %20: i32 = constant {{value = 0}}
  %21: bool = constant {{value = 0}}
  %22: bool = constant {{value = 1}}
  %23: i32 = constant {{value = 64}}
  %24: i32 = constant {{value = 128}}
  mbarrier_expect_tx %9, %20 {{bytes = {14}}}
)",
      dtype, shape(a, kM), shape(b, kN), place_a.box_rows, place_a.box_columns, a.swizzle,
      place_b.box_rows, place_b.box_columns, b.swizzle, layout_text(64, 64, size), kAOffset,
      layout_text(128, 64, size), kBOffset, kBarrier, (kM + kN) * kK * size);
  int next = 100;
  text += copies_text(place_a, "%5", "%7", next);
  text += copies_text(place_b, "%6", "%8", next);
  text += "  mbarrier_wait %9, %20, %20\n";
  text += "  %30: registers<f32, 64> = registers {name = \"acc\"}\n  wgmma_fence %30\n";
  for (std::size_t i = 0; i < place_b.steps.size(); ++i) {
    text += fmt::format(
        "  wgmma_ss %30, %7, %20, %8, %20, {} {{n = 128, k = {}, descriptor_a = {}, descriptor_b = "
        "{}, step_a = {}, step_b = {}, transpose_a = {}, transpose_b = {}}}\n",
        i ? "%22" : "%21", 32 / size, place_a.descriptor, place_b.descriptor, place_a.steps[i],
        place_b.steps[i], static_cast<int>(a.mn_major), static_cast<int>(b.mn_major));
  }
  return text + R"(  wgmma_commit
  wgmma_wait %30 {count = 0}
  store_registers %2, %30, %20, %20, %23, %24 {sizes = [64, 128], layout = register_layout[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|w:4@0:16]}
}
)";
}

class MachineProduct : public ::testing::TestWithParam<std::tuple<DType, int, int, bool, bool>> {};

TEST_P(MachineProduct, DecodesEveryCanonicalLayout) {
  const auto [dtype, swizzle_a, swizzle_b, a_mn_major, b_mn_major] = GetParam();
  const Operand a{dtype, swizzle_a, a_mn_major}, b{dtype, swizzle_b, b_mn_major};
  const auto shape = [](const Operand& operand, std::int64_t mn) {
    return operand.mn_major ? std::vector<std::int64_t>{kK, mn} : std::vector<std::int64_t>{mn, kK};
  };
  MachineTensor ta("A", dtype, shape(a, kM)), tb("B", dtype, shape(b, kN));
  MachineTensor c("C", DType::f32, {kM, kN});
  ta.randomise(3);
  tb.randomise(4);
  const std::string text = product_text(a, b);
  ir::verify(ir::parse_text(text, "kernel.tw"));
  MachineOptions options;
  options.seed = 5;
  options.provenance = true;  // an operand is one box of its tensor in each layout
  const MachineReport report = run(text, {&ta, &tb, &c}, options);
  ASSERT_TRUE(report.ok()) << first_message(report);
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < kK; ++l) {
        sum += double{a.mn_major ? ta.at(l, i) : ta.at(i, l)} *
               (b.mn_major ? tb.at(l, j) : tb.at(j, l));
      }
      ASSERT_EQ(static_cast<float>(sum), c.at(i, j)) << i << ", " << j;
    }
  }
}

using ::testing::Bool;
using ::testing::Combine;
using ::testing::Values;

INSTANTIATE_TEST_SUITE_P(Bf16, MachineProduct,
                         Combine(Values(DType::bf16), Values(0, 32, 64, 128),
                                 Values(0, 32, 64, 128), Bool(), Bool()));
INSTANTIATE_TEST_SUITE_P(F16, MachineProduct,
                         Combine(Values(DType::f16), Values(128), Values(0, 128), Bool(), Bool()));
// 8-bit operands are K-major; rows of k have 64 bytes here.
INSTANTIATE_TEST_SUITE_P(F8, MachineProduct,
                         Combine(Values(DType::f8e4m3), Values(0, 32, 64), Values(0, 32, 64),
                                 Values(false), Values(false)));

// O {64, 64} = P V with P in registers: P[r][k] = r + k from coordinates, V {64, 64} MN-major.
std::string register_text() {
  const Placement v({DType::bf16, 128, true}, 64, 64);
  std::string text = R"(kernel "register_operand" machine
in V: bf16[64, 64] = %0
out O: f32[64, 64] = %1
grid (1)
threads 128
shared_bytes 8200
body () {
  %5: tensor_map = tensor_map %0 {name = "V map", box = [64, 64], swizzle = 128}
  %6: shared<bf16, 1x64x64> = shared {name = "V", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %7: mbarriers<1> = mbarriers {name = "full", arrivals = 1, offset = 8192}
  mbarrier_init %7 {arrivals = 1}
  fence_barrier_init
  cta_sync
  %20: i32 = constant {value = 0}
  %21: bool = constant {value = 0}
  %22: bool = constant {value = 1}
  %23: i32 = constant {value = 64}
  mbarrier_expect_tx %7, %20 {bytes = 8192}
  tma_load %5, %6, %20, %7, %20, %20, %20 {bytes = 8192}
  %30: registers<i32, 32> = registers {name = "row"}
  %31: registers<i32, 32> = registers {name = "column"}
  %32: registers<bf16, 32> = registers {name = "P"}
  coordinate %30 {axis = 0, layout = register_layout[64x64|r:2@1:1,2@0:8,8@1:8|l:4@1:2,8@0:1|w:4@0:16]}
  coordinate %31 {axis = 1, layout = register_layout[64x64|r:2@1:1,2@0:8,8@1:8|l:4@1:2,8@0:1|w:4@0:16]}
  compute %30, %30, %31 {function = add, maps = maps[[1:32:1], [1:32:1]]}
  compute %32, %30 {function = cast, maps = maps[[1:32:1]]}
  mbarrier_wait %7, %20, %20
  %33: registers<f32, 32> = registers {name = "O"}
  wgmma_fence %33, %32
)";
  for (std::size_t i = 0; i < v.steps.size(); ++i) {
    text += fmt::format(
        "  wgmma_rs %33, %32, %6, %20, {} {{n = 64, k = 16, descriptor_b = {}, "
        "register = {}, step_b = {}, transpose_b = 1}}\n",
        i ? "%22" : "%21", v.descriptor, 4 * i, v.steps[i]);
  }
  return text + R"(  wgmma_commit
  wgmma_wait %33 {count = 0}
  store_registers %1, %33, %20, %20, %23, %23 {sizes = [64, 64], layout = register_layout[64x64|r:2@1:1,2@0:8,8@1:8|l:4@1:2,8@0:1|w:4@0:16]}
}
)";
}

TEST(MachineRegisterOperand, MatchesFloat64) {
  const std::string text = register_text();
  ir::verify(ir::parse_text(text, "kernel.tw"));
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    MachineTensor v("V", DType::bf16, {64, 64}), o("O", DType::f32, {64, 64});
    v.randomise(7);
    const MachineReport report = run_seed(text, {&v, &o}, seed);
    ASSERT_TRUE(report.ok()) << first_message(report);
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < 64; ++l) sum += static_cast<double>(i + l) * v.at(l, j);
        ASSERT_EQ(static_cast<float>(sum), o.at(i, j)) << i << ", " << j;
      }
    }
  }
}

TEST(MachineRegisterOperand, OverwritingItInFlightIsFound) {
  const std::string text =
      changed(register_text(), "  wgmma_commit\n",
              "  wgmma_commit\n  compute %32, %30 {function = cast, maps = maps[[1:32:1]]}\n");
  MachineTensor v("V", DType::bf16, {64, 64}), o("O", DType::f32, {64, 64});
  v.randomise(7);
  const MachineReport report = run(text, {&v, &o});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "wgmma");
  EXPECT_THAT(report.faults[0].message, HasSubstr("P is in flight as a product's A operand"));
}

TEST(MachineRegisterOperand, MissingFenceAfterItsWritesIsFound) {
  // The fence comes before the cast that writes P.
  std::string text = changed(register_text(), "  wgmma_fence %33, %32\n", "");
  text = changed(text, "  compute %32,", "  wgmma_fence %32\n  compute %32,");
  text = changed(text, "  %33: registers<f32, 32> = registers {name = \"O\"}\n", "");
  text = changed(text, "  %32: registers",
                 "  %33: registers<f32, 32> = registers {name = \"O\"}\n  %32: registers");
  MachineTensor v("V", DType::bf16, {64, 64}), o("O", DType::f32, {64, 64});
  v.randomise(7);
  const MachineReport report = run(text, {&v, &o});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].missing, "wgmma_fence between the last use of P and the product");
}

}  // namespace
}  // namespace tilewright::simulator
