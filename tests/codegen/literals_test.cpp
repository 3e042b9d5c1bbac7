#include <gtest/gtest.h>

#include <cstdint>

#include "codegen/cuda/expressions.h"

// Numbers as CUDA reads them.
namespace tilewright::codegen {
namespace {

TEST(Literals, OfIntegers) {
  const auto text = [](DType dtype, std::int64_t value) { return literal(dtype, {value}); };
  EXPECT_EQ(text(i32, 7), "7");
  EXPECT_EQ(text(i32, -7), "(-7)");
  EXPECT_EQ(text(i32, INT32_MAX), "2147483647");
  // A minus sign before a number that does not fit would be of another type.
  EXPECT_EQ(text(i32, INT32_MIN), "(-2147483647 - 1)");
  EXPECT_EQ(text(i64, INT64_MAX), "9223372036854775807ll");
  EXPECT_EQ(text(i64, INT64_MIN), "(-9223372036854775807ll - 1)");
  EXPECT_EQ(text(i8, -1), "0xffu");
  EXPECT_EQ(text(u8, 200), "0xc8u");
}

}  // namespace
}  // namespace tilewright::codegen
