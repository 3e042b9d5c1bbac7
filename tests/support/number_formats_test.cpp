#include "support/number_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tilewright/error.h"

namespace tilewright {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Format {
  DType dtype;
  int bits, mantissa_bits, bias;
  std::uint32_t largest;  // pattern of the largest finite value
  bool has_infinity;
};
const Format kFormats[] = {{DType::f16, 16, 10, 15, 0x7bff, true},
                           {DType::bf16, 16, 7, 127, 0x7f7f, true},
                           {DType::f8e4m3, 8, 3, 7, 0x7e, false}};

float decode(DType dtype, std::uint32_t pattern) {
  std::byte bytes[2] = {std::byte(pattern & 0xff), std::byte(pattern >> 8)};
  float value = 0;
  to_float(dtype, bytes, &value, 1);
  return value;
}

std::uint32_t encode(DType dtype, float value) {
  std::byte bytes[2] = {};
  from_float(dtype, &value, bytes, 1);
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8;
}

// By the definition of the formats.
double value_of(const Format& format, std::uint32_t pattern) {
  const int exponent = static_cast<int>(pattern >> format.mantissa_bits);
  const int mantissa = static_cast<int>(pattern & ((1u << format.mantissa_bits) - 1));
  const int one = 1 << format.mantissa_bits;
  return exponent == 0 ? std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits)
                       : std::ldexp(one + mantissa, exponent - format.bias - format.mantissa_bits);
}

TEST(NumberFormatsTest, EveryFinitePatternHasItsValueAndReturnsToItself) {
  for (const Format& format : kFormats) {
    const std::uint32_t sign = 1u << (format.bits - 1);
    for (std::uint32_t pattern = 0; pattern <= format.largest; ++pattern) {
      const float value = decode(format.dtype, pattern);
      ASSERT_EQ(value, value_of(format, pattern)) << name_of(format.dtype) << " " << pattern;
      ASSERT_EQ(encode(format.dtype, value), pattern) << name_of(format.dtype);
      const float negative = decode(format.dtype, pattern | sign);
      ASSERT_EQ(negative, -value);
      ASSERT_TRUE(std::signbit(negative));
      ASSERT_EQ(encode(format.dtype, negative), pattern | sign) << name_of(format.dtype);
    }
  }
}

TEST(NumberFormatsTest, BetweenTwoPatternsTheNearestWinsAndATieIsEven) {
  for (const Format& format : kFormats) {
    for (std::uint32_t pattern = 0; pattern < format.largest; ++pattern) {
      const double below = value_of(format, pattern), above = value_of(format, pattern + 1);
      const float middle = static_cast<float>((below + above) / 2);
      ASSERT_EQ(encode(format.dtype, middle), pattern + pattern % 2)
          << name_of(format.dtype) << " " << middle;
      ASSERT_EQ(encode(format.dtype, std::nextafter(middle, 0.0f)), pattern) << middle;
      ASSERT_EQ(encode(format.dtype, std::nextafter(middle, kInfinity)), pattern + 1) << middle;
    }
  }
}

TEST(NumberFormatsTest, PatternsThatAreNotFinite) {
  for (const Format& format : kFormats) {
    const std::uint32_t half = 1u << (format.bits - 1);
    const std::uint32_t infinity = format.largest + 1;
    for (std::uint32_t pattern = infinity; pattern < half; ++pattern) {
      const float value = decode(format.dtype, pattern);
      if (format.has_infinity && pattern == infinity) {
        EXPECT_EQ(value, kInfinity);
        EXPECT_EQ(decode(format.dtype, pattern + half), -kInfinity);
      } else {
        ASSERT_TRUE(std::isnan(value)) << name_of(format.dtype) << " " << pattern;
        ASSERT_TRUE(std::isnan(decode(format.dtype, pattern + half)));
      }
    }
    EXPECT_EQ(encode(format.dtype, kNan), half - 1);
    EXPECT_EQ(encode(format.dtype, -kNan), half - 1);
  }
}

TEST(NumberFormatsTest, OverflowIsInfinityExceptInE4m3) {
  EXPECT_EQ(round_to(DType::f16, 65519.996f), 65504);
  EXPECT_EQ(round_to(DType::f16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::f16, -1e30f), -kInfinity);
  EXPECT_EQ(round_to(DType::bf16, std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(round_to(DType::bf16, -kInfinity), -kInfinity);
  EXPECT_EQ(round_to(DType::f8e4m3, 449), 448);
  EXPECT_EQ(round_to(DType::f8e4m3, 500), 448);
  EXPECT_EQ(round_to(DType::f8e4m3, 1e30f), 448);
  EXPECT_EQ(round_to(DType::f8e4m3, -kInfinity), -448);
  EXPECT_EQ(round_to(DType::f32, 1e30f), 1e30f);
}

TEST(NumberFormatsTest, UnderflowGoesToZeroWithItsSign) {
  for (const Format& format : kFormats) {
    const std::uint32_t sign = 1u << (format.bits - 1);
    EXPECT_EQ(encode(format.dtype, 1e-45f), 0u);
    EXPECT_EQ(encode(format.dtype, -1e-45f), sign);
  }
}

TEST(NumberFormatsTest, ArraysConvertElementByElementFromUnalignedBytes) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) * 7;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    const std::size_t size = static_cast<std::size_t>(size_of(dtype));
    std::vector<std::byte> bytes(values.size() * size + 1);
    from_float(dtype, values.data(), bytes.data() + 1, values.size());
    std::vector<float> back(values.size()), rounded = values;
    to_float(dtype, bytes.data() + 1, back.data(), values.size());
    round_to(dtype, rounded.data(), rounded.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(back[i], rounded[i]);
      ASSERT_EQ(back[i], round_to(dtype, values[i]));
      ASSERT_NEAR(back[i], values[i], std::abs(values[i]) / 16 + 1e-3f);
    }
  }
}

TEST(NumberFormatsTest, AnIntegerDtypeIsAnError) {
  float value = 0;
  EXPECT_THROW(round_to(DType::i32, &value, 1), Error);
}

}  // namespace
}  // namespace tilewright
