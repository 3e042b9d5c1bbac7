#include "support/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tilewright {
namespace {

TEST(CountedTest, OneIsNoPlural) {
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(std::int64_t{2}, "run"), "2 runs");
  EXPECT_EQ(counted(std::size_t{0}, "CTA"), "0 CTAs");
  EXPECT_EQ(counted(11, "byte"), "11 bytes");
  EXPECT_EQ(counted(-1, "tensor"), "-1 tensors");
}

TEST(CountedTest, EndingsThatNeedMoreThanAnS) {
  EXPECT_EQ(counted(3, "launch"), "3 launches");
  EXPECT_EQ(counted(3, "mismatch"), "3 mismatches");
  EXPECT_EQ(counted(2, "address"), "2 addresses");
  EXPECT_EQ(counted(2, "box"), "2 boxes");
  EXPECT_EQ(counted(2, "copy"), "2 copies");
  EXPECT_EQ(counted(1, "copy"), "1 copy");
  EXPECT_EQ(counted(2, "way"), "2 ways");
}

}  // namespace
}  // namespace tilewright
