#include "library/differences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "tilewright/library.h"

// Where two executions differ.
namespace tilewright::library {
namespace {

// Also where options leave tensors out that stand before the outputs.
TEST(Differences, NamesTheFirstElementOfOtherBits) {
  Workload workload = make_workload(find_kernel("attention_backward"),
                                    {"heads=2", "queries=5", "keys=5", "dim=16"}, {}, 3);
  for (HostTensor& tensor : workload.tensors) {
    tensor = HostTensor::zeros(tensor.dtype(), tensor.shape());
  }
  Workload other = workload;
  EXPECT_EQ(first_difference(workload, other, "in the first run"), "");
  other.tensors[0].set({0, 1, 0, 2}, 3);  // an input
  EXPECT_EQ(first_difference(workload, other, "in the first run"), "");
  const auto output = [&](std::string_view name) {
    const auto is_it = [&](const LibraryTensor* each) { return each->name == name; };
    return std::find_if(other.parameters.begin(), other.parameters.end(), is_it) -
           other.parameters.begin();
  };
  other.tensors[static_cast<std::size_t>(output("dK"))].set({0, 4, 1, 15}, -0.5);
  EXPECT_EQ(first_difference(workload, other, "in the first run"),
            "dK[0, 4, 1, 15] is 0, and -0.5 in the first run");
}

std::optional<std::size_t> apart(const std::vector<double>& got, const std::vector<double>& wanted,
                                 double bound) {
  const auto count = static_cast<std::int64_t>(got.size());
  const HostTensor a = HostTensor::from_values(f32, {count}, got);
  const HostTensor b = HostTensor::from_values(f32, {count}, wanted);
  return first_apart(f32, {a.data(), a.size_bytes()}, {b.data(), b.size_bytes()}, bound);
}

TEST(Differences, AreRelativeToTheLargerOfAnElementAndAll) {
  EXPECT_EQ(apart({1, 2, 3}, {1, 2, 3}, 0), std::nullopt);
  EXPECT_EQ(apart({1, 2, 3.5}, {1, 2, 3}, 0), 2u);
  EXPECT_EQ(apart({1, 2, 0.01}, {1, 2, 0}, 0.01), std::nullopt);  // of 1.29
  EXPECT_EQ(apart({1, 2, 0.014}, {1, 2, 0}, 0.01), 2u);
  EXPECT_EQ(apart({1, 2.019}, {1, 2}, 0.01), std::nullopt);
  EXPECT_EQ(apart({1, 2.021}, {1, 2}, 0.01), 1u);
}

TEST(Differences, WhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bound : {0.0, 0.01}) {
    EXPECT_EQ(apart({nan, infinity, -0.0}, {-nan, infinity, 0.0}, bound), std::nullopt);
    EXPECT_EQ(apart({1}, {nan}, bound), 0u);
    EXPECT_EQ(apart({nan}, {1}, bound), 0u);
    EXPECT_EQ(apart({1}, {infinity}, bound), 0u);
    EXPECT_EQ(apart({infinity}, {1}, bound), 0u);
    EXPECT_EQ(apart({-infinity}, {infinity}, bound), 0u);
    // Nothing is small beside an infinity.
    EXPECT_EQ(apart({infinity, 1.5}, {infinity, 1}, bound), 1u);
  }
}

TEST(Differences, IntegersAreExact) {
  EXPECT_EQ(bound_of_any_order(i32), 0);
  EXPECT_LT(bound_of_any_order(f32), bound_of_any_order(bf16));
}

TEST(Differences, RoundedSumsMayBeTheNextNumber) {
  const auto may_be = [](DType dtype, double next) {
    const HostTensor sum = HostTensor::from_values(dtype, {1}, {1});
    const HostTensor other = HostTensor::from_values(dtype, {1}, {next});
    return !first_apart(dtype, {other.data(), other.size_bytes()}, {sum.data(), sum.size_bytes()},
                        bound_of_any_order(dtype));
  };
  EXPECT_TRUE(may_be(bf16, 1 + 0x1p-7));
  EXPECT_TRUE(may_be(f8e4m3, 1 + 0x1p-3));
  EXPECT_FALSE(may_be(bf16, 1 + 0x1p-6));
  EXPECT_FALSE(may_be(f8e4m3, 1 + 0x1p-2));
}

}  // namespace
}  // namespace tilewright::library
