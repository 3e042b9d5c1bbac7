#include "cpu/scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "common/error_text.h"

// Indices and other single numbers, where they end.
namespace tilewright::cpu {
namespace {

using ir::Op;
using testing::HasSubstr;

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

std::int64_t whole(Op function, DType dtype, std::int64_t a, std::int64_t b) {
  Scalar given[2];
  given[0].whole = a;
  given[1].whole = b;
  return evaluate({function, dtype, dtype, {0, 1, kNone}, 0, {}}, given).whole;
}
float real(Op function, float a, float b) {
  Scalar given[2];
  given[0].real = a;
  given[1].real = b;
  return evaluate({function, DType::f32, DType::f32, {0, 1, kNone}, 0, {}}, given).real;
}

TEST(CpuScalars, DivisionsRoundDown) {
  for (const auto& [a, b, quotient, rest, above] :
       {std::tuple(7, 2, 3, 1, 4), std::tuple(-7, 2, -4, 1, -3), std::tuple(7, -2, -4, -1, -3),
        std::tuple(-7, -2, 3, -1, 4), std::tuple(-8, 2, -4, 0, -4)}) {
    EXPECT_EQ(whole(Op::div, DType::i64, a, b), quotient) << a << " and " << b;
    EXPECT_EQ(whole(Op::mod, DType::i64, a, b), rest) << a << " and " << b;
    EXPECT_EQ(whole(Op::ceildiv, DType::i64, a, b), above) << a << " and " << b;
  }
  EXPECT_EQ(whole(Op::mod, DType::i64, kLowest, -1), 0);
  for (const Op function : {Op::div, Op::ceildiv}) {
    EXPECT_THAT(test::usage_error_of([&] { (void)whole(function, DType::i64, kLowest, -1); }),
                HasSubstr("of -9223372036854775808 and -1 overflows i64"));
  }
  EXPECT_THAT(test::usage_error_of([] { (void)whole(Op::mod, DType::i32, 5, 0); }),
              HasSubstr("5 is divided by zero"));
}

TEST(CpuScalars, ShiftsByAllBitsLeaveTheSign) {
  for (const auto& [dtype, bits] : {std::pair(DType::i32, 32), std::pair(DType::i64, 64)}) {
    EXPECT_EQ(whole(Op::shift_left, dtype, 1, bits - 2), std::int64_t{1} << (bits - 2));
    for (const std::int64_t amount :
         {std::int64_t{bits}, std::int64_t{bits + 1}, std::int64_t{-1}}) {
      EXPECT_EQ(whole(Op::shift_left, dtype, 5, amount), 0) << amount;
      EXPECT_EQ(whole(Op::shift_right, dtype, 5, amount), 0) << amount;
      EXPECT_EQ(whole(Op::shift_right, dtype, -5, amount), -1) << amount;
    }
    EXPECT_EQ(whole(Op::shift_right, dtype, -5, 1), -3);
  }
  EXPECT_EQ(whole(Op::shift_left, DType::i32, 3, 31), std::numeric_limits<std::int32_t>::min());
}

TEST(CpuScalars, CastsToIntegersEndWhereTheseEnd) {
  const auto cast = [](DType dtype, float number) {
    Scalar given[1];
    given[0].real = number;
    return evaluate({Op::cast, dtype, DType::f32, {0, kNone, kNone}, 0, {}}, given).whole;
  };
  EXPECT_EQ(cast(DType::i32, -2.5f), -2);
  EXPECT_EQ(cast(DType::i32, 3e9f), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(cast(DType::i32, -3e9f), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(cast(DType::i64, INFINITY), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(cast(DType::i64, -1e30f), kLowest);
}

TEST(CpuScalars, WhatLeavesTheDtypeIsAnError) {
  EXPECT_EQ(whole(Op::add, DType::i32, INT32_MAX, 0), INT32_MAX);
  EXPECT_THAT(test::usage_error_of([] { (void)whole(Op::add, DType::i32, INT32_MAX, 1); }),
              HasSubstr("add of 2147483647 and 1 overflows i32"));
  EXPECT_THAT(test::usage_error_of([] { (void)whole(Op::sub, DType::i64, kLowest, 1); }),
              HasSubstr("overflows i64"));
}

TEST(CpuScalars, MinAndMaxIgnoreWhatIsNoNumber) {
  for (const Op function : {Op::min, Op::max}) {
    EXPECT_EQ(real(function, 2, NAN), 2);
    EXPECT_EQ(real(function, NAN, 2), 2);
  }
  EXPECT_EQ(real(Op::min, 2, 3), 2);
  EXPECT_EQ(real(Op::max, 2, 3), 3);
}

}  // namespace
}  // namespace tilewright::cpu
