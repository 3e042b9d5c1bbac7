#include "cpu/call.h"

#include <gtest/gtest.h>

#include <vector>

#include "cpu/layout.h"

namespace tilewright::cpu {
namespace {

std::vector<int> counts;

TEST(CpuCalls, AChainHasNoMoreStepsThanItsFunctionTakes) {
  std::vector<float> row(16, 1);
  const Call::Place place{reinterpret_cast<std::byte*>(row.data()), 64, 4};
  const Call call{Call::Function(Elementwise{}), {1, 16}, {place, place, place, place}};
  for (const bool is_kept : {false, true}) {
    const PartOfStrips part{.weight = 5, .step = {.function = Function::add, .is_kept = is_kept}};
    ChainSteps all;
    CallOfStrips chain(call, part, all);
    int taken = 1;
    const auto count = [](Shape, const Step*, int steps, FirstRow) { counts.push_back(steps); };
    while (taken < 100 && chain.extend(call, part, count)) ++taken;
    counts.clear();
    EXPECT_TRUE(chain.perform(0, 1));
    ASSERT_EQ(counts.size(), 1U);
    EXPECT_LE(counts[0], kMaximumSteps);
    EXPECT_GE(counts[0], kMaximumSteps - 3);
    // Each function that it took, a load, and the stores.
    EXPECT_EQ(counts[0], 1 + taken + (is_kept ? taken : 1));
    EXPECT_EQ(chain.weight(), 5 * taken);
  }
}

// Functions read and write whole groups, also of a single number.
TEST(CpuLayout, ATileHasRoomForAGroup) {
  for (const DType dtype : {DType::f32, DType::i64, DType::bf16, DType::boolean}) {
    const std::int64_t group = 16 * size_of(dtype);
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {1, 1}, {1, 3}, {5, 1}, {2, 17}}) {
      EXPECT_GE(make_tile(dtype, shape).bytes, group) << name_of(dtype) << shape.size();
    }
    EXPECT_GE(make_tile(dtype, {2, 17}).bytes, 4 * group);
    EXPECT_GE(make_tile(dtype, {8, 1}, {false, true}).bytes, group);
  }
}

}  // namespace
}  // namespace tilewright::cpu
