#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_turns.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Parts of the heads that share a head of the keys, which CTAs go through for themselves.
namespace tilewright::kernels {
namespace {

Attention shared_heads(int group, bool causal) {
  Attention a;
  a.heads = group;
  a.kv_heads = 1;
  a.causal = causal;
  a.block_q = 64;
  a.block_k = 128;
  return a;
}

struct Shapes {
  Dim blocks;
  int queries;
  Dim kept_key_blocks(int) const { return blocks; }
  Dim mean_queries() const { return queries; }
};

constexpr int kMostParts = 64;

// How many steps each part takes of a block of keys that all rows see, where there are so many
// blocks. Each step must be one part's.
std::vector<std::int64_t> steps_of_parts(const Attention& a, const Shapes& shapes) {
  const int rows = (shapes.queries + a.block_q - 1) / a.block_q, all = rows * a.heads;
  Kernel kernel("parts");
  const Tensor taken = kernel.inout("taken", i32, {all});
  const Tensor sizes = kernel.inout("sizes", i32, {kMostParts});
  const Tensor announced = kernel.inout("announced", i32, {kMostParts});
  const HeadParts parts(a, HeadParts::wanted_uneven(a, shapes), shapes.blocks, Division::uneven);
  kernel.ctas(1);
  kernel.roles({role("count", warps(1), registers(24), [&] {
    for (Index part : range(parts.count)) {
      const KeyPlace at{0, 0, 0, 0, number_of(Way::rows_down), part};
      for_rows(parts, at, rows, [&](const Index& row, const Index& member) {
        atomic_add(taken(parts.number(part, member) * rows + row), 1);
        atomic_add(sizes(part), 1);
      });
      atomic_add(announced(part), parts.count_of(part, rows));
    }
  })});
  const HostTensor none = HostTensor::zeros(i32, {kMostParts});
  HostTensor taken_by = HostTensor::zeros(i32, {all}), of_parts = none, said = none;
  compile(kernel, "sim:sm_90a").run({ref(taken_by), ref(of_parts), ref(said)});
  for (int i = 0; i < all; ++i) EXPECT_EQ(taken_by.flat(i), 1) << "step " << i;
  std::vector<std::int64_t> found;
  for (int i = 0; i < kMostParts; ++i) {
    const auto size = static_cast<std::int64_t>(of_parts.flat(i));
    EXPECT_EQ(said.flat(i), of_parts.flat(i)) << "part " << i;
    if (size > 0) found.push_back(size);
  }
  return found;
}

using Sizes = std::vector<std::int64_t>;

// 128 blocks of 132 multiprocessors: four take what all others leave.
TEST(PartsOfSharedHeads, FillTheLastWave) {
  const Dim four_idle = multiprocessors() - 4;
  EXPECT_EQ(steps_of_parts(shared_heads(16, false), {four_idle, 4096}), Sizes({995, 29}));
  // A step of each would be too few.
  EXPECT_EQ(steps_of_parts(shared_heads(16, false), {four_idle, 512}), Sizes({128}));
  // Where the last wave is nearly empty, several parts.
  EXPECT_EQ(steps_of_parts(shared_heads(4, false), {multiprocessors() + 8, 4096}),
            Sizes({140, 29, 29, 29, 29}));
}

TEST(PartsOfSharedHeads, OfFewBlocksAreEven) {
  EXPECT_EQ(steps_of_parts(shared_heads(7, false), {Dim(10), 640}),
            Sizes({10, 10, 10, 10, 10, 10, 10}));
}

// Under a mask the longest block of keys of two parts takes as long as all: two heads come last.
TEST(PartsOfSharedHeads, OfACausalMaskAreLongAndShort) {
  const Dim four_idle = multiprocessors() - 4;
  EXPECT_EQ(steps_of_parts(shared_heads(16, true), {four_idle, 16384}),
            Sizes({1792, 1792, 256, 256}));
  EXPECT_EQ(steps_of_parts(shared_heads(16, true), {four_idle, 4096}), Sizes({512, 512}));
  EXPECT_EQ(steps_of_parts(shared_heads(8, true), {four_idle, 16384}), Sizes({1024, 1024}));
}

}  // namespace
}  // namespace tilewright::kernels
