#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/kernel_sets.h"
#include "support/number_formats.h"

// Copies, conversions and fills.
namespace tilewright::cpu {
namespace {

Convert conversion(const Kernels& kernels, Element from, Element to) {
  return kernels.convert[static_cast<int>(from)][static_cast<int>(to)];
}

bool equal_floats(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

template <typename Bits>
void expect_widening(Element element, DType dtype) {
  const std::int64_t count = std::int64_t{1} << (8 * sizeof(Bits));
  TestTile<Bits> source(1, count);
  std::int64_t next = 0;
  source.fill([&] { return static_cast<Bits>(next++); });
  std::vector<float> wanted(static_cast<std::size_t>(count));
  to_float(dtype, reinterpret_cast<const std::byte*>(source.row(0)), wanted.data(), wanted.size());
  for (const Kernels* const set : sets_here()) {
    TestTile<float> result(1, count);
    conversion(*set, element, Element::f32)({1, count}, source.operand(), result.result());
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(equal_floats(result.at(0, i), wanted[static_cast<std::size_t>(i)]))
          << name_of(dtype) << " " << i << " on " << set->name;
    }
  }
}

// Floats around every number of 16 bits and between two of them.
template <typename Bits>
void expect_narrowing(Element element, DType dtype) {
  const std::int64_t count = 1 << 18;
  TestTile<float> source(1, count);
  std::uint32_t next = 0;
  source.fill([&] {
    constexpr std::uint32_t kBehind[] = {0, 0x7fff, 0x8000, 0x8001};
    const std::uint32_t bits = (next / 4) << 16 | kBehind[next % 4];
    ++next;
    // The middle between two numbers of 10 and of 3 bits lies elsewhere.
    return std::bit_cast<float>(element == Element::bf16 ? bits : bits << (next % 3) * 3);
  });
  std::vector<Bits> wanted(static_cast<std::size_t>(count));
  from_float(dtype, source.row(0), reinterpret_cast<std::byte*>(wanted.data()), wanted.size());
  for (const Kernels* const set : sets_here()) {
    TestTile<Bits> result(1, count);
    conversion(*set, Element::f32, element)({1, count}, source.operand(), result.result());
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(result.at(0, i), wanted[static_cast<std::size_t>(i)])
          << name_of(dtype) << " of " << source.at(0, i) << " on " << set->name;
    }
  }
}

TEST(CpuKernelsMove, ConversionsOfFloatsAreThoseOfMemory) {
  expect_widening<std::uint16_t>(Element::f16, DType::f16);
  expect_widening<std::uint16_t>(Element::bf16, DType::bf16);
  expect_widening<std::uint8_t>(Element::f8e4m3, DType::f8e4m3);
  expect_narrowing<std::uint16_t>(Element::f16, DType::f16);
  expect_narrowing<std::uint16_t>(Element::bf16, DType::bf16);
  expect_narrowing<std::uint8_t>(Element::f8e4m3, DType::f8e4m3);
}

template <typename To>
To nearest(float x) {
  if (std::isnan(x)) return 0;
  const double whole = std::nearbyint(static_cast<double>(x));
  if (whole <= static_cast<double>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  if (whole >= static_cast<double>(std::numeric_limits<To>::max())) {
    return std::numeric_limits<To>::max();
  }
  return static_cast<To>(whole);
}

template <typename To>
void expect_from_floats(Element to) {
  TestTile<float> source(1, 2000);
  std::mt19937 random(1);
  source.fill([&] {
    const std::uint32_t bits = random();
    return bits % 3 ? std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), -(bits % 40))
                    : std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  });
  source.at(0, 0) = NAN, source.at(0, 1) = INFINITY, source.at(0, 2) = -INFINITY;
  source.at(0, 3) = 0.5f, source.at(0, 4) = 1.5f, source.at(0, 5) = -2.5f, source.at(0, 6) = -0.0f;
  for (const Kernels* const set : sets_here()) {
    TestTile<To> result(1, 2000);
    conversion(*set, Element::f32, to)({1, 2000}, source.operand(), result.result());
    for (std::int64_t i = 0; i < 2000; ++i) {
      ASSERT_EQ(result.at(0, i), nearest<To>(source.at(0, i))) << source.at(0, i) << set->name;
    }
  }
}
TEST(CpuKernelsMove, FloatsBecomeTheNearestInteger) {
  expect_from_floats<std::int32_t>(Element::i32);
  expect_from_floats<std::int64_t>(Element::i64);
  expect_from_floats<std::int8_t>(Element::i8);
  expect_from_floats<std::uint8_t>(Element::u8);
  expect_from_floats<std::uint32_t>(Element::u32);
}

template <typename From, typename To, typename Wanted>
void expect_conversion(Element from, Element to, Wanted wanted) {
  std::mt19937_64 random(2);
  TestTile<From> source(2, 70);
  source.fill(
      [&] { return static_cast<From>(static_cast<std::int64_t>(random()) >> random() % 64); });
  if (from == Element::boolean) source.fill([&] { return static_cast<From>(random() % 2); });
  for (const Kernels* const set : sets_here()) {
    TestTile<To> result(2, 70), repeated(2, 70);
    conversion(*set, from, to)({2, 70}, source.operand(), result.result());
    conversion(*set, from, to)({2, 70}, source.column(), repeated.result());
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 70; ++j) {
        ASSERT_EQ(result.at(i, j), wanted(source.at(i, j))) << set->name;
        ASSERT_EQ(repeated.at(i, j), wanted(source.at(i, 0))) << set->name;
      }
    }
  }
}
template <typename To, typename From>
To saturated(From x) {
  const auto wide = static_cast<std::int64_t>(x);
  return static_cast<To>(std::clamp<std::int64_t>(wide, std::numeric_limits<To>::min(),
                                                  std::numeric_limits<To>::max()));
}
TEST(CpuKernelsMove, IntegersAndBooleans) {
  using I64 = std::int64_t;
  using I32 = std::int32_t;
  expect_conversion<I64, I32>(Element::i64, Element::i32,
                              [](I64 x) { return static_cast<I32>(x); });
  expect_conversion<I32, I64>(Element::i32, Element::i64, [](I32 x) { return I64{x}; });
  expect_conversion<I64, float>(Element::i64, Element::f32,
                                [](I64 x) { return static_cast<float>(x); });
  expect_conversion<I32, float>(Element::i32, Element::f32,
                                [](I32 x) { return static_cast<float>(x); });
  expect_conversion<I64, std::int8_t>(Element::i64, Element::i8, saturated<std::int8_t, I64>);
  expect_conversion<I32, std::uint8_t>(Element::i32, Element::u8, saturated<std::uint8_t, I32>);
  expect_conversion<I64, std::uint32_t>(Element::i64, Element::u32, saturated<std::uint32_t, I64>);
  expect_conversion<std::uint32_t, I64>(Element::u32, Element::i64,
                                        [](std::uint32_t x) { return I64{x}; });
  expect_conversion<std::int8_t, I32>(Element::i8, Element::i32,
                                      [](std::int8_t x) { return I32{x}; });
  expect_conversion<I32, std::uint8_t>(Element::i32, Element::boolean,
                                       [](I32 x) { return static_cast<std::uint8_t>(x != 0); });
  expect_conversion<std::uint8_t, float>(Element::boolean, Element::f32,
                                         [](std::uint8_t x) { return static_cast<float>(x); });
  expect_conversion<std::uint8_t, I64>(Element::boolean, Element::i64,
                                       [](std::uint8_t x) { return I64{x}; });
}

// Nothing past the columns changes, of every width.
TEST(CpuKernelsMove, ConversionsAreExact) {
  for (const Kernels* const set : sets_here()) {
    for (std::int64_t columns = 0; columns <= 70; ++columns) {
      std::vector<float> source(70, 1.0f);
      std::vector<std::uint16_t> target(3 * 70, 7);
      conversion(*set, Element::f32, Element::bf16)({2, columns}, {source.data(), 0, false},
                                                    {target.data(), 140});
      for (std::int64_t i = 0; i < 3 * 70; ++i) {
        const bool inside = i < 140 && i % 70 < columns;
        ASSERT_EQ(target[static_cast<std::size_t>(i)], inside ? 0x3f80 : 7);
      }
    }
  }
}

// `repeats`: the first element of each row stands for all of it.
template <typename T>
void expect_copies(int size, bool transposed, bool repeats) {
  const std::int64_t rows = 37, columns = 70;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  std::mt19937_64 random(3);
  std::vector<T> source(static_cast<std::size_t>(rows * columns));
  for (T& element : source) element = static_cast<T>(random());
  for (const Kernels* const set : sets_here()) {
    for (const std::int64_t width : {1, 3, 16, 33, 70}) {
      std::vector<T> target(source.size(), T{5});
      const Matrix from = {source.data(), columns * kBytes, repeats ? 0 : kBytes};
      const Matrix to = transposed ? Matrix{target.data(), kBytes, rows * kBytes}
                                   : Matrix{target.data(), columns * kBytes, kBytes};
      set->copy[size]({rows, width}, from, to);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          const std::int64_t at = transposed ? j * rows + i : i * columns + j;
          const std::int64_t taken = i * columns + (repeats ? 0 : j);
          const T wanted = j < width ? source[static_cast<std::size_t>(taken)] : T{5};
          ASSERT_EQ(target[static_cast<std::size_t>(at)], wanted) << set->name;
        }
      }
    }
  }
}
template <typename T>
void expect_copies(int size) {
  for (const bool transposed : {false, true}) {
    for (const bool repeats : {false, true}) expect_copies<T>(size, transposed, repeats);
  }
}
TEST(CpuKernelsMove, CopiesWithAnyStrides) {
  expect_copies<std::uint8_t>(0);
  expect_copies<std::uint16_t>(1);
  expect_copies<std::uint32_t>(2);
  expect_copies<std::uint64_t>(3);
}

template <typename T>
void expect_fill(int size) {
  for (const Kernels* const set : sets_here()) {
    TestTile<T> tile(3, 33);
    const T value = 42;
    set->fill[size]({3, 33}, &value, tile.result());
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 33; ++j) ASSERT_EQ(tile.at(i, j), value);
    }
    ASSERT_TRUE(tile.is_closed());
  }
}
TEST(CpuKernelsMove, FillsAndCoordinates) {
  expect_fill<std::uint8_t>(0);
  expect_fill<std::uint16_t>(1);
  expect_fill<std::uint32_t>(2);
  expect_fill<std::uint64_t>(3);
  for (const Kernels* const set : sets_here()) {
    TestTile<std::int32_t> columns(5, 70), rows(5, 70);
    set->iota_columns({5, 70}, columns.result());
    set->iota_rows({5, 70}, rows.result());
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t j = 0; j < 70; ++j) {
        ASSERT_EQ(columns.at(i, j), j);
        ASSERT_EQ(rows.at(i, j), i);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::cpu
