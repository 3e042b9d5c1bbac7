#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cpu_kernel.h"
#include "cpu/processors.h"
#include "cpu/together.h"
#include "support/diagnostic.h"
#include "tilewright/kernel.h"

// On the target cpu blocks whose few rows meet parts of the same pages go over them together, in
// launches of more bytes than the caches hold. That changes no bit.
namespace tilewright::compiler {
namespace {

constexpr std::int64_t kHeads = 16, kDim = 64, kKeys = 128, kKeysAtOnce = 16;

// O = (Q K^T) V of the first keys: each head has a block more than the one before, up to 8.
ir::Kernel products_of_heads(std::int64_t queries, int group) {
  Kernel kernel("products");
  const Dim batch = kernel.dim("batch"), rows = kernel.dim("rows");
  const Tensor Q = kernel.in("Q", f32, {batch, kHeads, rows, kDim});
  const Tensor K = kernel.in("K", f32, {batch, kKeys, kHeads, kDim});
  const Tensor V = kernel.in("V", f32, {batch, kKeys, kHeads, kDim});
  const Tensor O = kernel.out("O", f32, {batch, kHeads, rows, kDim});
  const auto [h, b] = kernel.grid(kHeads, batch);
  const Block all_rows = rows.block(0, queries);
  const Tile q = load(Q(b, h, all_rows, all));
  Var sum{zeros({all_rows, kDim})};
  for (const Index j : range(h % 8 + 1)) {
    const Block keys = Dim(kKeys).block(j, kKeysAtOnce);
    const Tile scores = dot(q, load(K(b, keys, h / group, all)).T());
    sum = sum + dot(scores * 0.125, load(V(b, keys, h / group, all)));
  }
  store(O(b, h, all_rows, all), sum);
  return kernel.finish();
}

std::vector<float> waves(std::int64_t count, double step) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  }
  return result;
}

class CpuTogetherRowsTest : public testing::TestWithParam<std::pair<int, int>> {};

// Keys of a batch begin an element behind those of the one before, so that they take little memory.
TEST_P(CpuTogetherRowsTest, BlocksGiveTheBitsThatTheyGiveAlone) {
  const auto [rows, group] = GetParam();
  constexpr std::int64_t kOfBatch = kKeys * kHeads * kDim, kBytes = 2 * 4 * kOfBatch;
  const std::int64_t batches = std::max<std::int64_t>(cpu::last_level_cache() / kBytes, 1) + 2;
  const std::int64_t of_output = kHeads * rows * kDim;
  std::vector<float> Q = waves(batches * of_output, 0.7), K = waves(kOfBatch + batches, 0.3),
                     V = waves(kOfBatch + batches, 0.9);
  const auto compiled = compile_for_cpu(products_of_heads(rows, group));
  const auto run = [&](std::int64_t first, std::int64_t count, std::vector<float>& O,
                       unsigned threads) {
    const auto tensor = [&](const char* name, std::vector<float>& data, std::int64_t of_batch,
                            std::vector<std::int64_t> shape) {
      const std::vector<std::int64_t> strides = {of_batch, shape[1] * shape[2], shape[2], 1};
      shape.insert(shape.begin(), count);
      return TensorArgument{name, f32, shape, strides,
                            reinterpret_cast<std::byte*>(data.data() + first * of_batch)};
    };
    Arguments arguments;
    arguments.tensors = {
        tensor("Q", Q, of_output, {kHeads, rows, kDim}), tensor("K", K, 1, {kKeys, kHeads, kDim}),
        tensor("V", V, 1, {kKeys, kHeads, kDim}), tensor("O", O, of_output, {kHeads, rows, kDim})};
    compiled->run(arguments, {.threads = threads});
  };
  std::vector<float> alone(Q.size(), NAN);
  for (std::int64_t b = 0; b < batches; ++b) run(b, 1, alone, 1);
  for (const unsigned threads : {1, 3}) {
    std::vector<float> together(Q.size(), NAN);
    run(0, batches, together, threads);
    EXPECT_EQ(std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)), 0)
        << threads;
  }
}

// Heads that have keys of their own, and two that share them; rows that are packed for.
INSTANTIATE_TEST_SUITE_P(Rows, CpuTogetherRowsTest,
                         testing::Values(std::pair(2, 1), std::pair(1, 2), std::pair(12, 1)));

constexpr std::int64_t kFewHeads = 6, kWideDim = 192, kBatches = 3;

// O = (Q K^T) V of a row: head h has h % 6 blocks of keys, the first none. Block j of a head is
// that which T names.
ir::Kernel products_by_table() {
  Kernel kernel("products");
  const Tensor T = kernel.in("T", i32, {kFewHeads, 8});
  const Tensor Q = kernel.in("Q", f32, {kBatches, kFewHeads, 1, kWideDim});
  const Tensor K = kernel.in("K", f32, {kBatches, kKeys, kFewHeads, kWideDim});
  const Tensor O = kernel.out("O", f32, {kBatches, kFewHeads, 1, kWideDim});
  const auto [h, b] = kernel.grid(kFewHeads, kBatches);
  const Tile q = load(Q(b, h, all, all));
  Var sum{zeros({1, kWideDim})};
  for (const Index j : range((h + 1) % kFewHeads)) {
    const Index row = load_index(T(h, load_index(T(h, j))));
    const Tile keys = load(K(b, Dim(kKeys).block(row, kKeysAtOnce), h, all));
    sum = sum + dot(dot(q, keys.T()), keys);
  }
  store(O(b, h, all, all), sum);
  return kernel.finish();
}

// Runs it by one thread of blocks that go together, or one after the other.
struct ByTable {
  explicit ByTable(bool together) {
    arguments.tensors = {{"T", i32, {kFewHeads, 8}, {8, 1}, reinterpret_cast<std::byte*>(T.data())},
                         tensor("Q", Q, 1),
                         tensor("K", K, kKeys),
                         tensor("O", O, 1)};
    arguments.tensors[2].shape = {kBatches, kKeys, kFewHeads, kWideDim};
    arguments.tensors[2].strides = {kKeys * kFewHeads * kWideDim, kFewHeads * kWideDim, kWideDim,
                                    1};
    launch.program = &compiled->program();
    launch.kernels = &compiled->kernels();
    launch.arguments = &arguments;
    launch.scalars = launch.program->scalars;
    launch.grid = {kFewHeads, kBatches};
    is_together = together;
  }
  TensorArgument tensor(const char* name, std::vector<float>& data, std::int64_t rows) {
    const std::int64_t of_head = rows * kWideDim;
    return {name,
            f32,
            {kBatches, kFewHeads, rows, kWideDim},
            {kFewHeads * of_head, of_head, kWideDim, 1},
            reinterpret_cast<std::byte*>(data.data())};
  }
  std::size_t run(std::int64_t begin, std::int64_t end) {
    cpu::Together blocks(launch, is_together ? cpu::loop_over_tensors(*launch.program) : nullptr);
    blocks.run(begin, end);
    return blocks.went_together();
  }

  std::shared_ptr<const cpu::CompiledKernel> compiled = compile_for_cpu(products_by_table());
  std::vector<std::int32_t> T = std::vector<std::int32_t>(kFewHeads * 8, 0);
  std::vector<float> Q = waves(kBatches * kFewHeads * kWideDim, 0.7);
  std::vector<float> K = waves(kBatches * kKeys * kFewHeads * kWideDim, 0.3);
  std::vector<float> O = std::vector<float>(Q.size(), NAN);
  Arguments arguments;
  cpu::Launch launch;
  bool is_together;
};

// Groups end with the last head of a sequence, which goes over no memory.
TEST(CpuTogetherTest, GroupsThatAreCutShortGiveTheSameBits) {
  ByTable together(true), alone(false);
  EXPECT_EQ(alone.run(0, kFewHeads * kBatches), 1u);
  EXPECT_EQ(together.run(0, kFewHeads * kBatches), std::size_t{kFewHeads});
  EXPECT_EQ(std::memcmp(together.O.data(), alone.O.data(), alone.O.size() * sizeof(float)), 0);
}

// Head 4 leaves T in its first round, and head 3 in its third.
TEST(CpuTogetherTest, TheFirstBlockThatFailsIsTold) {
  for (const bool is_together : {false, true}) {
    ByTable blocks(is_together);
    blocks.T[4 * 8] = 77;
    blocks.T[3 * 8 + 2] = 33;
    try {
      blocks.run(0, kFewHeads * kBatches);
      ADD_FAILURE() << "nothing failed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("33"), std::string::npos) << error.what();
    }
    // Heads before it were run to their end, and nothing behind it was.
    EXPECT_FALSE(std::isnan(blocks.O[2 * kWideDim]));
    EXPECT_TRUE(std::isnan(blocks.O[4 * kWideDim]));
  }
}

}  // namespace
}  // namespace tilewright::compiler
