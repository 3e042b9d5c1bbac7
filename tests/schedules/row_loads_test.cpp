#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Rows of numbers that a loop loads beside what its products read.
namespace tilewright {
namespace {

// Y = sum over blocks of columns of exp2(A B^T / 8 - W) B, W a row of a tensor whose rows are a
// multiple of `multiple` long. With a causal mask a warpgroup leaves out blocks that others need.
Kernel weighted(int multiple, bool is_causal) {
  Kernel kernel("weighted");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", multiple_of(multiple));
  const Tensor A = kernel.in("A", bf16, {rows, 64}), B = kernel.in("B", bf16, {columns, 64});
  const Tensor W = kernel.in("W", f32, {2, columns}), Y = kernel.out("Y", f32, {rows, 64});
  const auto [x] = kernel.grid(ceil_div(rows, 128));
  const Block own = rows.block(x, 128), second(Index(1), 1, Index(2));
  const Tile a = load(A(own, all));
  const Mask mask = is_causal ? causal(rows, columns) : everything();
  Var sum{zeros({own, 64})};
  for (Block block : mask.blocks(own, columns, 64)) {
    const Tile b = load(B(block, all));
    const Tile scores = mask.apply(dot(a, b.T()), own, block);
    sum = dot(exp2(scores * 0.125 - load(W(second, block))).cast(bf16), b, sum);
  }
  store(Y(own, all), sum);
  return kernel;
}

// Row i of Y.
std::vector<double> wanted_row(const HostTensor& A, const HostTensor& B, const HostTensor& W,
                               bool is_causal, std::int64_t i) {
  const std::int64_t rows = A.shape()[0], columns = B.shape()[0];
  std::vector<double> sums(64, 0);
  for (std::int64_t c = 0; c < columns; ++c) {
    if (is_causal && c > i + columns - rows) continue;
    double score = 0;
    for (std::int64_t d = 0; d < 64; ++d) score += A.flat(64 * i + d) * B.flat(64 * c + d);
    const double weight = std::exp2(score / 8 - W.flat(columns + c));
    for (std::int64_t j = 0; j < 64; ++j) sums[j] += weight * B.flat(64 * c + j);
  }
  return sums;
}

TEST(RowLoads, AreAsTheyWouldBeInRegisters) {
  for (const bool is_causal : {false, true}) {
    for (const auto& [multiple, columns] : {std::pair(1, 77), {4, 76}, {4, 260}, {64, 256}}) {
      SCOPED_TRACE(testing::Message() << columns << " columns, of a multiple of " << multiple
                                      << (is_causal ? ", causal" : ""));
      const std::int64_t rows = 200;
      HostTensor A = HostTensor::random_normal(bf16, {rows, 64}, 1),
                 B = HostTensor::random_normal(bf16, {columns, 64}, 2),
                 W = HostTensor::random_normal(f32, {2, columns}, 3),
                 Y = HostTensor::poisoned(f32, {rows, 64});
      compile(weighted(multiple, is_causal), "sim:sm_90a").run({ref(A), ref(B), ref(W), ref(Y)});
      double error = 0, scale = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::vector<double> row = wanted_row(A, B, W, is_causal, i);
        for (std::int64_t j = 0; j < 64; ++j) {
          error += std::pow(Y.flat(64 * i + j) - row[j], 2);
          scale += row[j] * row[j];
        }
      }
      // Weights are rounded to bf16. The other row of W gives an error of 1 and more.
      EXPECT_LT(std::sqrt(error / scale), 3e-3);
    }
  }
}

// TMA steps between rows by 16 bytes: only where every launch does.
TEST(RowLoads, PassThroughSharedMemoryWhereTmaMaySurelyCopyThem) {
  for (const bool is_causal : {false, true}) {
    Kernel sure = weighted(4, is_causal);
    sure.require({stages("W") >= 2, instructions("load_registers") == 0});
    EXPECT_NO_THROW(check(sure, "sm_90a"));
    Kernel unsure = weighted(2, is_causal);
    unsure.require({stages("W") >= 1});
    EXPECT_THROW(check(unsure, "sm_90a"), Error);
  }
}

}  // namespace
}  // namespace tilewright
