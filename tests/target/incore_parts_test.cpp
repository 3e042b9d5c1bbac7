#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "incore_products.h"
#include "simulator/machine/machine.h"
#include "target/target.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Parts of tiles on cores with explicit memories.
namespace tilewright::simulator {
namespace {

using testing::HasSubstr;

// The part's part lies 8 rows and 40 columns behind the tile's first element.
constexpr int kRow = 8, kColumn = 40;

int slice_line = 0;

Kernel parts_kernel() {
  Kernel kernel("parts");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {m, n}), W = kernel.in("W", bf16, {32, 48});
  const Tensor Sums = kernel.out("Sums", f32, {m, 32}), Y = kernel.out("Y", f32, {m, 48});
  const Tensor Inner = kernel.out("Inner", bf16, {ceil_div(m, 32), 16, 16});
  const auto [i] = kernel.grid(ceil_div(m, 32));
  const Block rows = m.block(i, 32);
  const Tile x = load(X(rows, Block(0, 64, n)));
  slice_line = __LINE__ + 1;
  const Tile left = x.slice({0, 0}, {32, 32}), right = x.slice({0, 32}, {32, 32});
  store(Sums(rows, all), left.cast(f32) + 2 * right.cast(f32));
  store(Y(rows, all), dot(right, load(W(all, all))));
  store(Inner(i, all, all), x.slice({kRow, 32}, {24, 32}).slice({0, kColumn - 32}, {16, 16}));
  return kernel;
}

// A part of a loaded tile is a load. What does not exist of it is 0 in a product, also where none
// of it does, and is not stored.
TEST(IncoreParts, OfALoadedTileAreLoaded) {
  const Kernel kernel = parts_kernel();
  for (const target::Target* target : target::targets()) {
    if (!target->core) continue;
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target->name).kernel;
    int loads = 0;
    ir::for_each(machine.body, [&](const ir::Operation& o) {
      loads += o.op == ir::Op::core_load && o.where.line == slice_line;
    });
    EXPECT_GE(loads, 2);
    for (const auto& [m, n] : {std::pair{70, 64}, {33, 50}, {5, 20}, {32, 41}}) {
      SCOPED_TRACE(target->name + " " + std::to_string(m) + " " + std::to_string(n));
      const std::int64_t blocks = (m + 31) / 32;
      HostTensor x = HostTensor::random_normal(bf16, {m, n}, 1);
      HostTensor w = HostTensor::random_normal(bf16, {32, 48}, 2);
      HostTensor sums = HostTensor::poisoned(f32, {m, 32}), y = HostTensor::poisoned(f32, {m, 48});
      HostTensor inner = HostTensor::poisoned(bf16, {blocks, 16, 16});
      Arguments arguments;
      arguments.tensors = {given("X", x), given("W", w), given("Sums", sums), given("Y", y),
                           given("Inner", inner)};
      MachineOptions options;
      options.multiprocessors = 2;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << report.faults.front().message << report.faults.front().missing;
      const auto at = [&, m = m, n = n](std::int64_t row, std::int64_t column) {
        return row < m && column < n ? x.at({row, column}) : 0.0;
      };
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t j = 0; j < 32; ++j) {
          if (32 + j >= n) {
            ASSERT_TRUE(std::isnan(sums.at({row, j}))) << row << " " << j;
            continue;
          }
          ASSERT_EQ(sums.at({row, j}), at(row, j) + 2 * at(row, 32 + j)) << row << " " << j;
        }
        for (std::int64_t j = 0; j < 48; ++j) {
          double wanted = 0;
          for (std::int64_t d = 0; d < 32; ++d) wanted += at(row, 32 + d) * w.at({d, j});
          ASSERT_NEAR(y.at({row, j}), wanted, 1e-4) << row << " " << j;
        }
      }
      for (std::int64_t b = 0; b < blocks; ++b) {
        for (std::int64_t r = 0; r < 16; ++r) {
          for (std::int64_t c = 0; c < 16; ++c) {
            const std::int64_t row = b * 32 + kRow + r, column = kColumn + c;
            if (row < m && column < n) {
              ASSERT_EQ(inner.at({b, r, c}), x.at({row, column})) << row << " " << column;
            } else {
              ASSERT_TRUE(std::isnan(inner.at({b, r, c}))) << row << " " << column;
            }
          }
        }
      }
    }
  }
}

// Rows that a launch places are held against their tensor as they were written. A part of them is
// refused, and so is a part of what was computed.
TEST(IncoreParts, OfWhatALaunchPlacesAreRefused) {
  const auto error_of = [](bool placed, bool computed) {
    Kernel kernel("refused");
    const Dim n = kernel.dim("n");
    const Tensor X = kernel.in("X", f32, {n, 64}), offsets = kernel.in("offsets", i32, {1});
    const Tensor Y = kernel.out("Y", f32, {16, 64});
    kernel.grid(1);
    const Index first = placed ? load_index(offsets(0)) : Index(0);
    const Tile x = load(X(Block(first, 32, n), all));
    store(Y(all, all), (computed ? x * 2 : x).slice({16, 0}, {16, 64}));
    return test::usage_error_of(
        [&] { compiler::compile_to_machine(kernel.finish(), "incore_unified"); });
  };
  EXPECT_THAT(error_of(true, false), HasSubstr("V has no slice"));
  EXPECT_THAT(error_of(false, true), HasSubstr("V has no slice"));
}

}  // namespace
}  // namespace tilewright::simulator
