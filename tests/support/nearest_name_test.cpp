#include "support/nearest_name.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(NearestName, CountsLetters) {
  EXPECT_EQ(difference("gemm", "gemm"), 0u);
  EXPECT_EQ(difference("gem", "gemm"), 1u);
  EXPECT_EQ(difference("gemms", "gemm"), 1u);
  EXPECT_EQ(difference("gamm", "gemm"), 1u);
  EXPECT_EQ(difference("", "gemm"), 4u);
  EXPECT_EQ(difference("softmax", "rotary"), 5u);
}

TEST(NearestName, IsToldWhereASlipCouldHaveMadeIt) {
  const std::vector<std::string> known{"rotary", "gemm", "gemm_nt", "attention_forward"};
  EXPECT_EQ(nearest_text("gem", known), "; the nearest name is gemm");
  EXPECT_EQ(nearest_text("atention_foward", known), "; the nearest name is attention_forward");
  EXPECT_EQ(nearest_text("nothing", known), "");
  EXPECT_EQ(nearest_text("", known), "");
  EXPECT_EQ(nearest_text(std::string(1 << 20, 'g'), known), "");
  EXPECT_EQ(nearest_text("gem", {}), "");
  EXPECT_EQ(nearest_name("nothing", known), "rotary") << "the first of those that differ least";
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'g'), known), "gemm");
}

}  // namespace
}  // namespace tilewright
