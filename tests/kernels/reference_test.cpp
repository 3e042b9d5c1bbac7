#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tilewright/library.h"

namespace tilewright {
namespace {

std::vector<std::vector<double>> attention(const std::vector<std::string>& settings,
                                           const std::vector<HostTensor>& inputs) {
  const LibraryKernel& kernel = find_kernel("attention_forward");
  return kernel.reference(resolve_options(kernel, settings), inputs);
}

TEST(ReferenceTest, GemmMultipliesByTheTranspose) {
  const LibraryKernel& kernel = find_kernel("gemm");
  const HostTensor a = HostTensor::from_values(f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const HostTensor b = HostTensor::from_values(f32, {2, 3}, {1, 0, 2, 0, 1, 1});
  EXPECT_EQ(kernel.reference(resolve_options(kernel, {}), {a, b})[0],
            (std::vector<double>{7, 5, 16, 11}));
}

TEST(ReferenceTest, GemmSumsMoreTermsThanItHasAccumulators) {
  const LibraryKernel& kernel = find_kernel("gemm");
  std::vector<double> values(19);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i);
    sum += values[i] * values[i];
  }
  const HostTensor a = HostTensor::from_values(f32, {1, 19}, values);
  EXPECT_EQ(kernel.reference(resolve_options(kernel, {}), {a, a})[0][0], sum);
}

TEST(ReferenceTest, AttentionOfTwoKeysIsTheWeightedMean) {
  const HostTensor q = HostTensor::from_values(f32, {1, 1, 1, 1}, {2});
  const HostTensor k = HostTensor::from_values(f32, {1, 2, 1, 1}, {0, 1});
  const HostTensor v = HostTensor::from_values(f32, {1, 2, 1, 1}, {10, 20});
  const auto out = attention({"heads=1", "queries=1", "keys=2", "dim=1"}, {q, k, v});
  const double weight = std::exp(2.0) / (1 + std::exp(2.0));
  EXPECT_NEAR(out[0][0], 10 + 10 * weight, 1e-12);
  EXPECT_NEAR(out[1][0], std::log(1 + std::exp(2.0)), 1e-12);
}

// Scores are all 0: each output is the mean of the visible values.
TEST(ReferenceTest, AttentionSeesWhatTheMaskShows) {
  const HostTensor q = HostTensor::zeros(f32, {1, 2, 1, 1});
  const HostTensor k = HostTensor::zeros(f32, {1, 4, 1, 1});
  const HostTensor v = HostTensor::from_values(f32, {1, 4, 1, 1}, {1, 2, 4, 8});
  const std::vector<std::string> sizes = {"heads=1", "queries=2", "keys=4", "dim=1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), sizes.begin(), sizes.end());
    return attention(more, {q, k, v})[0];
  };
  EXPECT_EQ(with({}), (std::vector<double>{3.75, 3.75}));
  EXPECT_EQ(with({"causal=true"})[1], 3.75);
  EXPECT_NEAR(with({"causal=true"})[0], 7.0 / 3, 1e-12);
  EXPECT_EQ(with({"causal=true", "window=2"}), (std::vector<double>{3, 6}));
}

TEST(ReferenceTest, ASinkTakesItsShareAndACapBoundsScores) {
  const HostTensor q = HostTensor::from_values(f32, {1, 1, 1, 1}, {100});
  const HostTensor k = HostTensor::from_values(f32, {1, 2, 1, 1}, {0, 1});
  const HostTensor v = HostTensor::from_values(f32, {1, 2, 1, 1}, {10, 20});
  const std::vector<std::string> sizes = {"heads=1", "queries=1", "keys=2", "dim=1"};
  const auto with = [&](std::vector<std::string> more, const std::vector<HostTensor>& inputs) {
    more.insert(more.end(), sizes.begin(), sizes.end());
    return attention(more, inputs);
  };
  // The scores are 0 and 100, capped 0 and 1.
  const double e = std::exp(1.0);
  EXPECT_NEAR(with({"softcap=1"}, {q, k, v})[0][0], (10 + 20 * e) / (1 + e), 1e-9);
  const HostTensor sink = HostTensor::from_values(f32, {1}, {std::log(2.0)});
  const auto sunk = with({"softcap=1", "sinks=true"}, {q, k, v, sink});
  EXPECT_NEAR(sunk[0][0], (10 + 20 * e) / (3 + e), 1e-6);
  EXPECT_NEAR(sunk[1][0], std::log(3 + e), 1e-6);
  // With a scale of their own they are 0 and 1.
  EXPECT_NEAR(with({"scale=0.01"}, {q, k, v})[0][0], (10 + 20 * e) / (1 + e), 1e-9);
}

TEST(ReferenceTest, AttentionOfPackedSequencesIsThatOfEach) {
  const LibraryKernel& kernel = find_kernel("attention_varlen_forward");
  const HostTensor q = HostTensor::zeros(f32, {3, 1, 1});
  const HostTensor k = HostTensor::zeros(f32, {4, 1, 1});
  const HostTensor v = HostTensor::from_values(f32, {4, 1, 1}, {1, 2, 4, 8});
  const HostTensor q_offsets = HostTensor::from_values(i32, {4}, {0, 1, 1, 3});
  const HostTensor k_offsets = HostTensor::from_values(i32, {4}, {0, 0, 1, 4});
  const auto out = kernel.reference(resolve_options(kernel, {"batch=3", "heads=1", "queries=3",
                                                             "keys=4", "dim=1", "causal=true"}),
                                    {q, k, v, q_offsets, k_offsets});
  // The first has no key; the last two queries see two and three.
  EXPECT_EQ(out[0][0], 0);
  EXPECT_NEAR(out[0][1], 3, 1e-12);
  EXPECT_NEAR(out[0][2], 14.0 / 3, 1e-12);
  EXPECT_EQ(out[1][0], -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(out[1][2], std::log(3.0), 1e-12);
}

TEST(ReferenceTest, AttentionSharesKeyHeads) {
  const HostTensor q = HostTensor::zeros(f32, {1, 1, 4, 1});
  const HostTensor k = HostTensor::zeros(f32, {1, 1, 2, 1});
  const HostTensor v = HostTensor::from_values(f32, {1, 1, 2, 1}, {3, 5});
  const auto out = attention({"heads=4", "kv_heads=2", "queries=1", "keys=1", "dim=1"}, {q, k, v});
  EXPECT_EQ(out[0], (std::vector<double>{3, 3, 5, 5}));
}

}  // namespace
}  // namespace tilewright
