#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "cpu/kernel_sets.h"

namespace tilewright::cpu {
namespace {

constexpr const char* kNames[] = {
#define TW_NAME(name) #name,
    TW_CPU_FUNCTIONS(TW_NAME)
#undef TW_NAME
};

double ignoring_nan(double a, double b, bool larger) {
  return (larger ? a > b : a < b) || std::isnan(b) ? a : b;
}

// What the function is of numbers of the lane, in doubles.
double reference(Function f, double a, double b, double c) {
  switch (f) {
    case Function::add:
      return a + b;
    case Function::sub:
      return a - b;
    case Function::mul:
      return a * b;
    case Function::div:
      return a / b;
    case Function::min:
      return ignoring_nan(a, b, false);
    case Function::max:
      return ignoring_nan(a, b, true);
    case Function::fma:
      return std::fma(a, b, c);
    case Function::neg:
      return -a;
    case Function::abs:
      return std::fabs(a);
    case Function::exp:
      return std::exp(a);
    case Function::exp2:
      return std::exp2(a);
    case Function::log:
      return std::log(a);
    case Function::log2:
      return std::log2(a);
    case Function::sqrt:
      return std::sqrt(a);
    case Function::rsqrt:
      return 1 / std::sqrt(a);
    case Function::rcp:
      return 1 / a;
    case Function::tanh:
      return std::tanh(a);
    case Function::log1p:
      return std::log1p(a);
    case Function::expm1:
      return std::expm1(a);
    case Function::erf:
      return std::erf(a);
    case Function::sin:
      return std::sin(a);
    case Function::cos:
      return std::cos(a);
    case Function::floor:
      return std::floor(a);
    case Function::ceil:
      return std::ceil(a);
    case Function::rint:
      return std::nearbyint(a);
    case Function::lt:
      return a < b;
    case Function::le:
      return a <= b;
    case Function::eq:
      return a == b;
    case Function::ne:
      return a != b;
    case Function::mod:
    case Function::ceildiv:
    case Function::logical_and:
    case Function::logical_or:
    case Function::logical_not:
    case Function::bit_and:
    case Function::bit_or:
    case Function::bit_xor:
    case Function::bit_not:
    case Function::shift_left:
    case Function::shift_right:
    case Function::count:
      break;
  }
  ADD_FAILURE() << "no function of floats";
  return 0;
}

// How far the result may be off, in units of the last place. The fused functions are exact with
// doubles too, but for their last rounding.
double units_allowed(Function f) {
  switch (f) {
    case Function::exp:
    case Function::exp2:
    case Function::log:
    case Function::log2:
    case Function::tanh:
    case Function::log1p:
    case Function::expm1:
    case Function::sin:
    case Function::cos:
      return 2;
    case Function::erf:
      return 3;
    case Function::rsqrt:
      return 1.5;
    default:
      return 0.5001;
  }
}

// The error of a float in units of the last place of what is wanted.
double units_off(float got, double wanted) {
  if (std::isnan(wanted)) return std::isnan(got) ? 0 : INFINITY;
  if (static_cast<float>(wanted) == got) return 0;
  if (std::isinf(got) || std::isinf(wanted)) {
    // The step past the largest float is one of its units.
    const double limit = 0x1.ffffffp127;
    return std::fabs(wanted) > limit * (1 - 0x1p-23) && std::fabs(got) > limit * (1 - 0x1p-22)
               ? 1
               : INFINITY;
  }
  const int exponent = std::max(wanted == 0 ? -126 : std::ilogb(wanted), -126);
  return std::fabs(got - wanted) / std::ldexp(1.0, exponent - 23);
}

bool is_of_one(Function f) {
  switch (f) {
    case Function::neg:
    case Function::abs:
    case Function::exp:
    case Function::exp2:
    case Function::log:
    case Function::log2:
    case Function::sqrt:
    case Function::rsqrt:
    case Function::rcp:
    case Function::tanh:
    case Function::log1p:
    case Function::expm1:
    case Function::erf:
    case Function::sin:
    case Function::cos:
    case Function::floor:
    case Function::ceil:
    case Function::rint:
    case Function::logical_not:
    case Function::bit_not:
      return true;
    default:
      return false;
  }
}

Elementwise kernel_of(const Kernels& kernels, Function f, Lane lane) {
  return kernels.elementwise[static_cast<int>(f)][static_cast<int>(lane)];
}
std::vector<Function> functions() {
  std::vector<Function> all;
  for (int i = 0; i < static_cast<int>(Function::count); ++i)
    all.push_back(static_cast<Function>(i));
  return all;
}
bool is_comparison(Function f) {
  return f == Function::lt || f == Function::le || f == Function::eq || f == Function::ne;
}

// Of all sizes: numbers near 1, of any exponent, and what is special.
class SomeFloats {
 public:
  explicit SomeFloats(unsigned seed) : random_(seed) {}
  float operator()() {
    const std::uint32_t bits = random_();
    switch (bits % 8) {
      case 0:
        return kSpecial[bits / 8 % std::size(kSpecial)];
      case 1:
      case 2:
        return std::bit_cast<float>(static_cast<std::uint32_t>(random_()));
      default:
        return std::ldexp(static_cast<float>(static_cast<std::int32_t>(random_())),
                          static_cast<int>(bits / 8 % 12) - 35);
    }
  }

 private:
  static constexpr float kSpecial[] = {
      0.0f,       -0.0f,     INFINITY,        -INFINITY,        NAN,    1.0f,    -1.0f, 0x1p-149f,
      -0x1p-140f, 0x1p-126f, 127.5f,          -126.5f,          128.0f, -149.5f, 0.5f,  2.5f,
      88.72f,     -87.4f,    0x1.fffffep127f, -0x1.fffffep127f, 0.625f, 0.93f,   1e6f,  3e7f};
  std::mt19937 random_;
};

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST(CpuKernelsElementwise, FunctionsOfFloatsAreAccurateAndEqualOnAllSetsWithFma) {
  TestTile<float> x(3, 4096), y(3, 4096), z(3, 4096);
  x.fill(SomeFloats(1));
  y.fill(SomeFloats(2));
  z.fill(SomeFloats(3));
  const Operand operands[] = {x.operand(), y.operand(), z.operand()};
  for (const Function f : functions()) {
    const TestTile<float>* with_fma = nullptr;
    TestTile<float> first(3, 4096);
    for (const Kernels* const set : sets_here()) {
      const Elementwise kernel = kernel_of(*set, f, Lane::f32);
      if (!kernel || is_comparison(f)) continue;
      TestTile<float> result(3, 4096);
      kernel({3, 4096}, operands, result.result());
      double worst = 0;
      std::string where;
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 4096; ++j) {
          const float a = x.at(i, j), b = y.at(i, j), c = z.at(i, j), got = result.at(i, j);
          double wanted = reference(f, a, b, c);
          if (f == Function::fma) wanted = std::fma(a, b, c);  // of floats, rounded once
          const double off = units_off(got, wanted);
          if (!(off <= worst)) {
            worst = off;
            where = std::to_string(a) + ", " + std::to_string(b) + ": " + std::to_string(got) +
                    " instead of " + std::to_string(wanted);
          }
          if (with_fma && has_fma(*set)) {
            ASSERT_TRUE(same_bits(got, with_fma->at(i, j)))
                << kNames[static_cast<int>(f)] << " of " << a << " on " << set->name;
          }
        }
      }
      EXPECT_LE(worst, units_allowed(f))
          << kNames[static_cast<int>(f)] << " on " << set->name << " at " << where;
      if (!with_fma && has_fma(*set)) {
        first = result;
        with_fma = &first;
      }
    }
  }
}

// So are those of another machine: x86-64 and NEON have been seen to give this number.
TEST(CpuKernelsElementwise, FunctionsOfFloatsHaveTheBitsThatTheyHaveElsewhere) {
  TestTile<float> x(3, 1024), y(3, 1024), z(3, 1024), result(3, 1024);
  x.fill(SomeFloats(1));
  y.fill(SomeFloats(2));
  z.fill(SomeFloats(3));
  const Operand operands[] = {x.operand(), y.operand(), z.operand()};
  for (const Kernels* const set : sets_here()) {
    if (!has_fma(*set)) continue;
    std::uint64_t hash = 0;
    for (const Function f : functions()) {
      const Elementwise kernel = kernel_of(*set, f, Lane::f32);
      // Of large angles they ask the C library.
      if (!kernel || is_comparison(f) || f == Function::sin || f == Function::cos) continue;
      kernel({3, 1024}, operands, result.result());
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 1024; ++j) {
          const float got = std::isnan(result.at(i, j)) ? NAN : result.at(i, j);
          hash = (hash ^ std::bit_cast<std::uint32_t>(got)) * 0x100000001b3;
        }
      }
    }
    EXPECT_EQ(hash, 7682843058060324452u) << set->name;
  }
}

template <typename T>
__int128 floor_divide(__int128 a, __int128 b) {
  const __int128 quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Of integers, which wrap.
template <typename T>
T whole_reference(Function f, T a, T b) {
  const __int128 x = a, y = b;
  const int bits = 8 * sizeof(T);
  const bool divides = b != 0 && !(a == std::numeric_limits<T>::min() && b == -1);
  switch (f) {
    case Function::add:
      return static_cast<T>(x + y);
    case Function::sub:
      return static_cast<T>(x - y);
    case Function::mul:
      return static_cast<T>(x * y);
    case Function::div:
      return divides ? static_cast<T>(floor_divide<T>(x, y)) : 0;
    case Function::mod:
      return divides ? static_cast<T>(x - y * floor_divide<T>(x, y)) : 0;
    case Function::ceildiv:
      return divides ? static_cast<T>(-floor_divide<T>(-x, y)) : 0;
    case Function::min:
      return std::min(a, b);
    case Function::max:
      return std::max(a, b);
    case Function::neg:
      return static_cast<T>(-x);
    case Function::abs:
      return static_cast<T>(x < 0 ? -x : x);
    case Function::bit_and:
    case Function::logical_and:
      return a & b;
    case Function::bit_or:
    case Function::logical_or:
      return a | b;
    case Function::bit_xor:
      return a ^ b;
    case Function::bit_not:
      return ~a;
    case Function::logical_not:
      return a == 0;
    case Function::shift_left:
      return b < 0 || b >= bits ? 0 : static_cast<T>(x << b);
    case Function::shift_right:
      return static_cast<T>(x >> (b < 0 || b >= bits ? bits - 1 : b));
    case Function::lt:
      return a < b;
    case Function::le:
      return a <= b;
    case Function::eq:
      return a == b;
    case Function::ne:
      return a != b;
    default:
      ADD_FAILURE() << "no function of integers";
      return 0;
  }
}

template <typename T>
struct Whole {
  explicit Whole(unsigned seed) : random(seed) {}
  T operator()() {
    const std::uint64_t bits = random();
    constexpr T kSpecial[] = {
        0, 1, -1, 31, 32, 64, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    if (bits % 4 == 0) return kSpecial[bits / 4 % std::size(kSpecial)];
    return static_cast<T>(random()) >> static_cast<int>(bits / 4 % (8 * sizeof(T)));
  }
  std::mt19937_64 random;
};
template <>
struct Whole<std::uint8_t> {
  explicit Whole(unsigned seed) : random(seed) {}
  std::uint8_t operator()() { return random() % 2; }
  std::mt19937 random;
};

template <typename T, typename Wanted>
void expect_results(const Kernels& set, Function f, Elementwise kernel, Shape shape,
                    const Operand* operands, Wanted wanted) {
  TestTile<T> result(shape.rows, shape.columns);
  kernel(shape, operands, result.result());
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      ASSERT_EQ(result.at(i, j), wanted(i, j))
          << kNames[static_cast<int>(f)] << " on " << set.name << " of " << shape.rows << " x "
          << shape.columns << " at " << i << ", " << j;
    }
  }
  ASSERT_TRUE(result.is_closed()) << kNames[static_cast<int>(f)] << " on " << set.name;
}

template <typename T>
void expect_whole_functions(Lane lane) {
  const std::int64_t columns = 300;  // more than the kernels take at once
  TestTile<T> x(4, columns), y(4, columns);
  x.fill(Whole<T>(4));
  y.fill(Whole<T>(5));
  for (const Kernels* const set : sets_here()) {
    for (const Function f : functions()) {
      const Elementwise kernel = kernel_of(*set, f, lane);
      if (!kernel) continue;
      for (const Broadcast kind : kBroadcasts) {
        if (is_of_one(f) && kind != Broadcast::full) continue;
        const Operand operands[] = {x.operand(), broadcast(y, kind)};
        const auto wanted = [&](std::int64_t i, std::int64_t j) {
          return whole_reference<T>(f, x.at(i, j), element_of<T>(operands[1], i, j));
        };
        if (is_comparison(f)) {
          expect_results<std::uint8_t>(*set, f, kernel, {4, columns}, operands, wanted);
        } else {
          expect_results<T>(*set, f, kernel, {4, columns}, operands, wanted);
        }
      }
    }
  }
}
TEST(CpuKernelsElementwise, FunctionsOfI32Wrap) { expect_whole_functions<std::int32_t>(Lane::i32); }
TEST(CpuKernelsElementwise, FunctionsOfI64Wrap) { expect_whole_functions<std::int64_t>(Lane::i64); }
TEST(CpuKernelsElementwise, FunctionsOfBooleans) {
  TestTile<std::uint8_t> x(2, 70), y(2, 70);
  x.fill(Whole<std::uint8_t>(6));
  y.fill(Whole<std::uint8_t>(7));
  const Operand operands[] = {x.operand(), y.operand()};
  for (const Kernels* const set : sets_here()) {
    for (const Function f : functions()) {
      const Elementwise kernel = kernel_of(*set, f, Lane::boolean);
      if (!kernel) continue;
      expect_results<std::uint8_t>(
          *set, f, kernel, {2, 70}, operands, [&](std::int64_t i, std::int64_t j) {
            return whole_reference<std::uint8_t>(f, x.at(i, j), y.at(i, j));
          });
    }
  }
}

// Every width up to 70 and every way in which operands are repeated. Values are exact in f32.
TEST(CpuKernelsElementwise, EveryWidthAndBroadcast) {
  std::mt19937 random(8);
  const auto next = [&] { return static_cast<float>(static_cast<int>(random() % 64) - 32); };
  for (const Kernels* const set : sets_here()) {
    for (std::int64_t columns = 0; columns <= 70; ++columns) {
      TestTile<float> x(3, columns), y(3, columns), z(3, columns);
      x.fill(next), y.fill(next), z.fill(next);
      for (const Broadcast a : kBroadcasts) {
        for (const Broadcast b : kBroadcasts) {
          const Operand operands[] = {broadcast(x, a), broadcast(y, b), broadcast(z, a)};
          const auto at = [&](int k, std::int64_t i, std::int64_t j) {
            return element_of<float>(operands[k], i, j);
          };
          if (columns == 0 && (a >= Broadcast::column || b >= Broadcast::column)) continue;
          expect_results<float>(
              *set, Function::sub, kernel_of(*set, Function::sub, Lane::f32), {3, columns},
              operands, [&](std::int64_t i, std::int64_t j) { return at(0, i, j) - at(1, i, j); });
          expect_results<float>(*set, Function::fma, kernel_of(*set, Function::fma, Lane::f32),
                                {3, columns}, operands, [&](std::int64_t i, std::int64_t j) {
                                  return at(0, i, j) * at(1, i, j) + at(2, i, j);
                                });
          expect_results<std::uint8_t>(
              *set, Function::lt, kernel_of(*set, Function::lt, Lane::f32), {3, columns}, operands,
              [&](std::int64_t i, std::int64_t j) { return at(0, i, j) < at(1, i, j); });
        }
      }
    }
  }
}

TEST(CpuKernelsElementwise, AResultMayLieWhereAnOperandLies) {
  for (const Kernels* const set : sets_here()) {
    TestTile<float> x(5, 70);
    x.fill(SomeFloats(9));
    TestTile<float> apart(5, 70);
    const Operand operands[] = {x.operand(), x.operand()};
    kernel_of(*set, Function::mul, Lane::f32)({5, 70}, operands, apart.result());
    kernel_of(*set, Function::mul, Lane::f32)({5, 70}, operands, x.result());
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t j = 0; j < 70; ++j) ASSERT_TRUE(same_bits(x.at(i, j), apart.at(i, j)));
    }
  }
}

template <typename T>
void expect_select(int size) {
  std::mt19937_64 random(10);
  for (const Kernels* const set : sets_here()) {
    for (const std::int64_t columns : {0, 1, 17, 70, 300}) {
      TestTile<std::uint8_t> condition(3, columns);
      TestTile<T> yes(3, columns), no(3, columns), result(3, columns);
      condition.fill([&] { return static_cast<std::uint8_t>(random() % 2); });
      yes.fill([&] { return static_cast<T>(random()); });
      no.fill([&] { return static_cast<T>(random()); });
      for (const Broadcast kind : kBroadcasts) {
        if (columns == 0 && kind >= Broadcast::column) continue;
        const Operand other = broadcast(no, kind);
        set->select[size]({3, columns}, condition.operand(), yes.operand(), other, result.result());
        for (std::int64_t i = 0; i < 3; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            ASSERT_EQ(result.at(i, j),
                      condition.at(i, j) ? yes.at(i, j) : element_of<T>(other, i, j));
          }
        }
        ASSERT_TRUE(result.is_closed());
      }
    }
  }
}
TEST(CpuKernelsElementwise, SelectOfElementsOfEverySize) {
  expect_select<std::uint8_t>(0);
  expect_select<std::uint16_t>(1);
  expect_select<std::uint32_t>(2);
  expect_select<std::uint64_t>(3);
}

}  // namespace
}  // namespace tilewright::cpu
