#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_backward_wave.h"
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

// Of blocks of so many steps, what is dealt of the last ones: the steps of each number, in the
// order of the numbers. Each step must be one part's, and each block have as many parts as are
// said.
std::vector<std::int64_t> steps_of_last_wave(const Dim& blocks, std::int64_t last, int steps) {
  constexpr int kMost = 400;
  Kernel kernel("wave");
  const Tensor taken = kernel.inout("taken", i32, {static_cast<int>(last) * steps});
  const Tensor sizes = kernel.inout("sizes", i32, {kMost});
  const Tensor parts = kernel.inout("parts", i32, {static_cast<int>(last)});
  const Tensor said = kernel.inout("said", i32, {static_cast<int>(last)});
  const LastWave wave(blocks, steps);
  const Dim first = blocks - static_cast<int>(last);
  kernel.ctas(1);
  kernel.roles({role("count", warps(1), registers(24), [&] {
    for (Index number : range(Index(first), wave.count())) {
      wave.for_parts(number, [&](const LastWave::Part& part) {
        const Index block = part.number - first;
        for (Index step : range(part.first, part.last)) atomic_add(taken(block * steps + step), 1);
        atomic_add(sizes(number - first), part.last - part.first);
        when(part.word > 0, [&] {
          const LastWave::Divided divided = LastWave::divided(part.word);
          atomic_add(parts(block), 1);
          atomic_add(said(divided.block), select(part.first == 0, divided.parts, 0));
        });
      });
    }
  })});
  HostTensor taken_by = HostTensor::zeros(i32, {last * steps});
  HostTensor of_numbers = HostTensor::zeros(i32, {kMost});
  HostTensor parts_of = HostTensor::zeros(i32, {last}), said_of = parts_of;
  compile(kernel, "sim:sm_90a").run({ref(taken_by), ref(of_numbers), ref(parts_of), ref(said_of)});
  for (std::int64_t i = 0; i < last; ++i) EXPECT_EQ(parts_of.flat(i), said_of.flat(i)) << i;
  for (std::int64_t i = 0; i < taken_by.elements(); ++i) {
    EXPECT_EQ(taken_by.flat(i), 1) << "step " << i;
  }
  std::vector<std::int64_t> found;
  for (int i = 0; i < kMost; ++i) {
    const auto size = static_cast<std::int64_t>(of_numbers.flat(i));
    if (size > 0) found.push_back(size);
  }
  return found;
}

// Few blocks: the tail of each has several places. The long part comes behind.
TEST(LastWave, TailsHaveThePlacesThatAreIdle) {
  EXPECT_EQ(steps_of_last_wave(multiprocessors() + 2, 2, 40),
            Sizes({8, 8, 8, 8, 8, 8, 8, 4, 10, 10}));
}

// 68 blocks leave 64 multiprocessors idle: a place has tails of two blocks.
TEST(LastWave, APlaceHasTailsOfTwoBlocks) {
  const Sizes sizes = steps_of_last_wave(multiprocessors() * 15 + 68, 68, 32);
  ASSERT_EQ(sizes.size(), 132U);
  EXPECT_EQ(sizes.front(), 15);
  EXPECT_EQ(sizes.back(), 18);
}

// Too few steps, or too few places that are idle.
TEST(LastWave, IsWholeWhereThatIsNoGain) {
  EXPECT_EQ(steps_of_last_wave(multiprocessors() * 15 + 68, 68, 16), Sizes(68, 16));
  EXPECT_EQ(steps_of_last_wave(multiprocessors() * 2 - 40, 92, 64), Sizes(92, 64));
}

}  // namespace
}  // namespace tilewright::kernels
