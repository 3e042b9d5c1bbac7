#include "explain/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::explanations {
namespace {

Work gemm(const std::vector<std::string>& settings) {
  const LibraryKernel& kernel = find_kernel("gemm");
  return work_of(kernel, resolve_options(kernel, settings));
}

TEST(RooflineTest, CountsEachTensorOnce) {
  const Work work = gemm({"m=256", "n=512", "k=128"});
  EXPECT_EQ(work.flops, 2.0 * 256 * 512 * 128);
  EXPECT_EQ(work.bytes, 2.0 * (256 * 128 + 512 * 128 + 256 * 512));
  EXPECT_EQ(gemm({"m=256", "n=512", "k=128", "dtype=f32"}).bytes, 2 * work.bytes);
}

TEST(RooflineTest, TheScarcerResourceBounds) {
  for (const RooflinePoint& point : roofline(gemm({"m=8192", "n=8192", "k=8192"}), "sm_90a")) {
    EXPECT_FALSE(point.memory_bound);
    EXPECT_EQ(point.flops_per_second, point.device->half_flops);
    EXPECT_DOUBLE_EQ(point.seconds, 2.0 * 8192 * 8192 * 8192 / point.device->half_flops);
  }
  // One row: each weight is read for two operations.
  const Work thin = gemm({"m=1", "n=8192", "k=8192"});
  for (const RooflinePoint& point : roofline(thin, "sm_90a")) {
    EXPECT_TRUE(point.memory_bound);
    EXPECT_NEAR(point.flops_per_second / point.device->memory_bytes, 1, 0.01);
    EXPECT_DOUBLE_EQ(point.seconds, thin.bytes / point.device->memory_bytes);
  }
}

TEST(RooflineTest, DevicesAreThoseOfTheTarget) {
  const auto names = [](std::string_view target) {
    std::vector<std::string> all;
    for (const RooflinePoint& point : roofline(gemm({}), target)) all.push_back(point.device->name);
    return all;
  };
  EXPECT_THAT(names("sm_90a"), testing::ElementsAre("H200 SXM", "H100 SXM"));
  EXPECT_THAT(names("sm_100a"), testing::ElementsAre("B200"));
  EXPECT_EQ(names("interpreter"), names("sm_90a"));
}

TEST(RooflineTest, EmptyProblemsTakeNoTime) {
  for (const RooflinePoint& point : roofline(gemm({"m=0", "n=0", "k=0"}), "sm_90a")) {
    EXPECT_EQ(point.seconds, 0);
  }
}

}  // namespace
}  // namespace tilewright::explanations
