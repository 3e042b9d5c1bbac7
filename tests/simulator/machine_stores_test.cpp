#include <fmt/format.h>

#include <utility>

#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

// Each warp of a CTA writes its 16 x 32 part of {64, 32} coordinates (row * 32 + column, in f16)
// to shared memory; TMA brings it to Y.
std::string matrix_text(int swizzle) {
  const std::string layout = "register_layout[64x32|r:2@1:1,2@0:8,4@1:8|l:4@1:2,8@0:1|w:4@0:16]";
  const int divisor = swizzle ? 128 / 64 : 1, mask = swizzle ? 3 : 0;
  return fmt::format(R"(kernel "matrix" machine
out Y: f16[64, 32] = %1
grid (1)
threads 128
shared_bytes 4096
body () {{
  %6: tensor_map = tensor_map %1 {{name = "Y map", box = [64, 32], swizzle = {1}}}
  %7: shared<f16, 1x64x32> = shared {{name = "tile", layout = shared_layout[64x32*2|64@0:64,32@1:2], stages = 1, offset = 0}}
  %20: i32 = constant {{value = 0}}
  %21: i32 = constant {{value = 32}}
  %22: i32 = constant {{value = 16}}
  %23: i32 = warp_index
  %24: i32 = mul %23, %22
  %30: registers<i32, 16> = registers {{name = "row"}}
  %31: registers<i32, 16> = registers {{name = "column"}}
  %32: registers<f16, 16> = registers {{name = "values"}}
  %33: registers<f16, 16> = registers {{name = "twice"}}
  coordinate %30 {{axis = 0, layout = {0}}}
  coordinate %31 {{axis = 1, layout = {0}}}
  compute %30, %30, %21 {{function = mul, maps = maps[[1:16:1], []]}}
  compute %30, %30, %31 {{function = add, maps = maps[[1:16:1], [1:16:1]]}}
  compute %32, %30 {{function = cast, maps = maps[[1:16:1]]}}
  store_matrix %32, %7, %20, %24 {{register = 0, row_bytes = 64, column_bytes = 0, swizzle_divisor = {2}, swizzle_mask = {3}}}
  store_matrix %32, %7, %20, %24 {{register = 4, row_bytes = 64, column_bytes = 32, swizzle_divisor = {2}, swizzle_mask = {3}}}
  warp_sync
  load_matrix %33, %7, %20, %24 {{register = 0, row_bytes = 64, column_bytes = 0, swizzle_divisor = {2}, swizzle_mask = {3}}}
  load_matrix %33, %7, %20, %24 {{register = 4, row_bytes = 64, column_bytes = 32, swizzle_divisor = {2}, swizzle_mask = {3}}}
  compute %33, %33, %33 {{function = add, maps = maps[[1:16:1], [1:16:1]]}}
  warp_sync
  store_matrix %33, %7, %20, %24 {{register = 0, row_bytes = 64, column_bytes = 0, swizzle_divisor = {2}, swizzle_mask = {3}}}
  store_matrix %33, %7, %20, %24 {{register = 4, row_bytes = 64, column_bytes = 32, swizzle_divisor = {2}, swizzle_mask = {3}}}
  fence_proxy_async
  cta_sync
  elect () {{
    tma_store %6, %7, %20, %20, %20
    bulk_commit
    bulk_wait {{count = 0}}
    yield
  }}
}}
)",
                     layout, swizzle, divisor, mask);
}

// Y, or its transpose, is to hold twice the number of each element, counted along the rows.
void expect_doubled_numbers(const std::string& text, std::vector<std::int64_t> shape,
                            bool transposed) {
  ir::verify(ir::parse_text(text, "kernel.tw"));
  MachineTensor y("Y", DType::f16, std::move(shape));
  const std::int64_t rows = y.shape[transposed ? 1 : 0], columns = y.shape[transposed ? 0 : 1];
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const MachineReport report = run_seed(text, {&y}, seed);
    ASSERT_TRUE(report.ok()) << first_message(report);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        ASSERT_EQ(transposed ? y.at(j, i) : y.at(i, j), static_cast<float>(2 * (i * columns + j)));
      }
    }
  }
}

TEST(MachineStores, MatricesGoThroughSharedMemoryAndBack) {
  for (const int swizzle : {0, 64}) expect_doubled_numbers(matrix_text(swizzle), {64, 32}, false);
}

// The same of a {64, 24} accumulator that is turned round: each warp has 16 of the tile's columns.
std::string transposed_text(int swizzle) {
  const std::string layout = "register_layout[64x24|r:2@1:1,2@0:8,3@1:8|l:4@1:2,8@0:1|w:4@0:16]";
  const std::string to = fmt::format(
      "%7, %20, %20, %25 {{row_bytes = 128, column_bytes = 0, swizzle_divisor = 1, "
      "swizzle_mask = {}, transposed = 1, ",
      swizzle ? 7 : 0);
  std::string moves;
  for (const char* move : {"store_matrix %32", "load_matrix %33"}) {
    moves += fmt::format("  {}, {}register = 0, step = 0}}\n", move, to);
    moves += fmt::format("  {}, {}register = 4, step = 2048, count = 2}}\n  warp_sync\n", move, to);
  }
  return fmt::format(R"(kernel "transposed" machine
out Y: f16[24, 64] = %1
grid (1)
threads 128
shared_bytes 3072
body () {{
  %6: tensor_map = tensor_map %1 {{name = "Y map", box = [24, 64], swizzle = {1}}}
  %7: shared<f16, 1x24x64> = shared {{name = "tile", layout = shared_layout[24x64*2|24@0:128,64@1:2], stages = 1, offset = 0}}
  %20: i32 = constant {{value = 0}}
  %21: i32 = constant {{value = 24}}
  %22: i32 = constant {{value = 2}}
  %23: i32 = warp_index
  %25: i32 = mul %23, %22
  %30: registers<i32, 12> = registers {{name = "row"}}
  %31: registers<i32, 12> = registers {{name = "column"}}
  %32: registers<f16, 12> = registers {{name = "values"}}
  %33: registers<f16, 12> = registers {{name = "again"}}
  coordinate %30 {{axis = 0, layout = {0}}}
  coordinate %31 {{axis = 1, layout = {0}}}
  compute %30, %30, %21 {{function = mul, maps = maps[[1:12:1], []]}}
  compute %30, %30, %31 {{function = add, maps = maps[[1:12:1], [1:12:1]]}}
  compute %32, %30 {{function = cast, maps = maps[[1:12:1]]}}
{2}  compute %33, %33, %32 {{function = add, maps = maps[[1:12:1], [1:12:1]]}}
  store_matrix %33, {3}register = 0, step = 0}}
  store_matrix %33, {3}register = 4, step = 2048, count = 2}}
  fence_proxy_async
  cta_sync
  elect () {{
    tma_store %6, %7, %20, %20, %20
    bulk_commit
    bulk_wait {{count = 0}}
    yield
  }}
}}
)",
                     layout, swizzle, moves, to);
}

TEST(MachineStores, TransposedMatricesGoThroughSharedMemoryAndBack) {
  for (const int swizzle : {0, 128}) {
    expect_doubled_numbers(transposed_text(swizzle), {24, 64}, true);
  }
}

TEST(MachineStores, TileStoredBeforeAllWarpsWroteItIsARace) {
  MachineTensor y("Y", DType::f16, {64, 32});
  EXPECT_THAT(kinds_of(changed(matrix_text(64), "  cta_sync\n", ""), {&y}, 20),
              ::testing::ElementsAre("race"));
}

// Elements through shared memory in panels of 16 columns, read back in another layout, and the row
// sums by registers and lanes.
std::string elements_text() {
  const std::string rows = "register_layout[32x32|r:32@1:1|l:32@0:1]";
  const std::string columns = "register_layout[32x32|r:32@0:1|l:32@1:1]";
  return fmt::format(R"(kernel "elements" machine
out Y: f32[20, 32] = %1
out S: f32[32] = %2
grid (1)
threads 32
shared_bytes 4096
body () {{
  %7: shared<f32, 1x32x32> = shared {{name = "tile", layout = shared_layout[32x32*4|32@0:64,16@1:4,2@1:2048], stages = 1, offset = 0}}
  %20: i32 = constant {{value = 0}}
  %21: i32 = constant {{value = 32}}
  %22: i32 = constant {{value = 64}}
  %23: f32 = constant {{value = 0.5}}
  %30: registers<i32, 32> = registers {{name = "row"}}
  %31: registers<i32, 32> = registers {{name = "column"}}
  %32: registers<f32, 32> = registers {{name = "values"}}
  %33: registers<f32, 32> = registers {{name = "again"}}
  %34: registers<f32, 1> = registers {{name = "sum"}}
  coordinate %30 {{axis = 0, layout = {0}}}
  coordinate %31 {{axis = 1, layout = {0}}}
  compute %30, %30, %22 {{function = mul, maps = maps[[1:32:1], []]}}
  compute %30, %30, %31 {{function = add, maps = maps[[1:32:1], [1:32:1]]}}
  compute %32, %30 {{function = cast, maps = maps[[1:32:1]]}}
  store_elements %32, %7, %20 {{layout = {0}, row_bytes = 64, swizzle_divisor = 2, swizzle_mask = 3, panel_columns = 16, panel_bytes = 2048}}
  load_elements %33, %7, %20 {{layout = {1}, row_bytes = 64, swizzle_divisor = 2, swizzle_mask = 3, panel_columns = 16, panel_bytes = 2048}}
  store_registers %1, %33, %20, %20, %21, %21 {{sizes = [32, 32], layout = {1}}}
  compute %33, %33, %23 {{function = mul, maps = maps[[1:32:1], []]}}
  reduce_registers %34, %33 {{function = add, maps = maps[[]]}}
  reduce_lanes %34 {{function = max, masks = [1, 2]}}
  store_registers %2, %34, %20, %21 {{sizes = [32], layout = register_layout[32|l:32@0:1]}}
}}
)",
                     rows, columns);
}

// Stores four elements at once, from a byte of the allocation on.
std::string vectors_text(int first) {
  const std::string text = changed(elements_text(), "bytes = 2048}", "bytes = 2048, vector = 4}");
  return changed(
      changed(text, "{value = 32}",
              fmt::format("{{value = 32}}\n  %24: i32 = constant {{value = {}}}", first)),
      "store_elements %32, %7, %20", "store_elements %32, %7, %24");
}

TEST(MachineStores, VectorsAreAlignedAndWhole) {
  MachineTensor y("Y", DType::f32, {20, 32}), s("S", DType::f32, {32});
  const MachineReport report = run(vectors_text(0), {&y, &s});
  ASSERT_TRUE(report.ok()) << first_message(report);
  for (int j = 0; j < 32; ++j) ASSERT_EQ(y.at(3, j), static_cast<float>(3 * 64 + j));
  EXPECT_THAT(kinds_of(vectors_text(8), {&y, &s}, 1), ::testing::Contains("misaligned"));
  for (const char* vector : {"vector = 3}", "vector = 8}"}) {
    const std::string text = changed(vectors_text(0), "vector = 4}", vector);
    EXPECT_THROW(ir::verify(ir::parse_text(text, "kernel.tw")), Error);
  }
}

TEST(MachineStores, ElementsChangeTheirLayoutInSharedMemory) {
  const std::string text = elements_text();
  ir::verify(ir::parse_text(text, "kernel.tw"));
  MachineTensor y("Y", DType::f32, {20, 32}), s("S", DType::f32, {32});
  const MachineReport report = run(text, {&y, &s});
  ASSERT_TRUE(report.ok()) << first_message(report);
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 32; ++j) ASSERT_EQ(y.at(i, j), static_cast<float>(i * 64 + j));
  }
  for (int j = 0; j < 32; ++j) {
    // Half the column's sum; the largest of four neighbours.
    ASSERT_EQ(s.values[j], 0.5f * (64 * 496 + 32 * (j | 3)));
  }
}
}  // namespace
}  // namespace tilewright::simulator
