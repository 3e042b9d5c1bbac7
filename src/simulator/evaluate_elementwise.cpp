#include "simulator/evaluate_elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

using ir::Op;

[[noreturn]] void unsupported(const Elementwise& function, const char* operands) {
  Diagnostic(function.where,
             std::string(ir::info(function.op).name) + " of " + operands + " is not defined")
      .raise();
}

void division_by_zero(const Elementwise& function, std::int64_t dividend) {
  if (function.may_not_exist) return;
  Diagnostic(function.where, std::string(ir::info(function.op).name) + ": " +
                                 std::to_string(dividend) + " is divided by zero")
      .fix("guard the divisor with max(divisor, 1), or with when(divisor > 0)")
      .raise();
}

std::int64_t lowest(DType dtype) { return range_of(dtype).low; }
std::int64_t highest(DType dtype) { return range_of(dtype).high; }

void overflow(const Elementwise& function, const std::string& operands) {
  if (function.may_not_exist) return;
  Diagnostic(function.where, std::string(ir::info(function.op).name) + " of " + operands +
                                 " overflows " + std::string(name_of(function.dtype)))
      .fix(function.dtype == DType::i32
               ? "cast the tile to i64 before; an Index is i32: keep each of its steps below 2^31"
               : "use smaller values")
      .raise();
}

template <typename T, typename F>
void map(std::size_t count, const T* const* x, T* result, F f) {
  for (std::size_t i = 0; i < count; ++i) result[i] = f(x[0][i]);
}
template <typename T, typename F>
void map2(std::size_t count, const T* const* x, T* result, F f) {
  for (std::size_t i = 0; i < count; ++i) result[i] = f(x[0][i], x[1][i]);
}
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Shifts by less than 0 or at least the dtype's bits leave nothing but the sign.
bool exceeds(DType dtype, std::int64_t amount) {
  return amount < 0 || amount >= 8 * size_of(dtype);
}

std::int64_t shift_left(DType dtype, std::int64_t a, std::int64_t amount) {
  if (exceeds(dtype, amount)) return 0;
  const auto shifted = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << amount);
  return dtype == DType::i32 ? static_cast<std::int32_t>(shifted) : shifted;
}

std::int64_t shift_right(DType dtype, std::int64_t a, std::int64_t amount) {
  return a >> (exceeds(dtype, amount) ? 63 : amount);
}

void evaluate_bits(const Elementwise& function, std::size_t n, const std::int64_t* const* x,
                   std::int64_t* y) {
  using Int = std::int64_t;
  const DType dtype = function.dtype;
  switch (ir::as<ir::BitFunction>(function.op)) {
    case ir::BitFunction::bit_and:
      return map2(n, x, y, [](Int a, Int b) { return a & b; });
    case ir::BitFunction::bit_or:
      return map2(n, x, y, [](Int a, Int b) { return a | b; });
    case ir::BitFunction::bit_xor:
      return map2(n, x, y, [](Int a, Int b) { return a ^ b; });
    case ir::BitFunction::bit_not:
      return map(n, x, y, [](Int a) { return ~a; });
    case ir::BitFunction::shift_left:
      return map2(n, x, y, [dtype](Int a, Int b) { return shift_left(dtype, a, b); });
    case ir::BitFunction::shift_right:
      return map2(n, x, y, [dtype](Int a, Int b) { return shift_right(dtype, a, b); });
  }
}

// `f(a, b, &result)` tells whether 64 bits overflow.
template <typename F>
void map_checked(const Elementwise& function, std::size_t n, const std::int64_t* const* x,
                 std::int64_t* y, F f) {
  const std::int64_t low = lowest(function.dtype), high = highest(function.dtype);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t a = x[0][i], b = x[1][i];
    std::int64_t result = 0;
    if (f(a, b, &result) || result < low || result > high) {
      overflow(function, std::to_string(a) + " and " + std::to_string(b));
    }
    y[i] = result;
  }
}

// `f(a, b)` of a divisor that is neither 0 nor, for the lowest dividend, -1.
template <typename F>
void map_divide(const Elementwise& function, std::size_t n, const std::int64_t* const* x,
                std::int64_t* y, F f) {
  map_checked(function, n, x, y, [&](std::int64_t a, std::int64_t b, std::int64_t* result) {
    if (b == 0) {
      division_by_zero(function, a);
      return false;
    }
    if (a == INT64_MIN && b == -1) return function.op != Op::mod;
    *result = f(a, b);
    return false;
  });
}

void whole_division(const Elementwise& function, std::size_t n, const std::int64_t* const* x,
                    std::int64_t* y) {
  using Int = std::int64_t;
  switch (ir::as<ir::DivisionFunction>(function.op)) {
    case ir::DivisionFunction::mod:
      return map_divide(function, n, x, y, [](Int a, Int b) { return a - floor_divide(a, b) * b; });
    case ir::DivisionFunction::ceildiv:
      return map_divide(function, n, x, y, [](Int a, Int b) {
        return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
      });
  }
}

void whole_arithmetic(const Elementwise& function, std::size_t n, const std::int64_t* const* x,
                      std::int64_t* y) {
  using Int = std::int64_t;
  const auto negate = [&function](Int a) {
    if (a != lowest(function.dtype)) return -a;
    overflow(function, std::to_string(a));
    return a;
  };
  switch (ir::as<ir::ArithmeticFunction>(function.op)) {
    case ir::ArithmeticFunction::add:
      return map_checked(function, n, x, y,
                         [](Int a, Int b, Int* r) { return __builtin_add_overflow(a, b, r); });
    case ir::ArithmeticFunction::sub:
      return map_checked(function, n, x, y,
                         [](Int a, Int b, Int* r) { return __builtin_sub_overflow(a, b, r); });
    case ir::ArithmeticFunction::mul:
      return map_checked(function, n, x, y,
                         [](Int a, Int b, Int* r) { return __builtin_mul_overflow(a, b, r); });
    case ir::ArithmeticFunction::div:
      return map_divide(function, n, x, y, floor_divide);
    case ir::ArithmeticFunction::min:
      return map2(n, x, y, [](Int a, Int b) { return a < b ? a : b; });
    case ir::ArithmeticFunction::max:
      return map2(n, x, y, [](Int a, Int b) { return a > b ? a : b; });
    case ir::ArithmeticFunction::neg:
      return map(n, x, y, negate);
    case ir::ArithmeticFunction::abs:
      return map(n, x, y, [&negate](Int a) { return a < 0 ? negate(a) : a; });
    case ir::ArithmeticFunction::fma:
      for (std::size_t i = 0; i < n; ++i) {
        Int r = 0;
        if (__builtin_mul_overflow(x[0][i], x[1][i], &r) ||
            __builtin_add_overflow(r, x[2][i], &r) || r < lowest(function.dtype) ||
            r > highest(function.dtype)) {
          overflow(function, std::to_string(x[0][i]) + ", " + std::to_string(x[1][i]) + " and " +
                                 std::to_string(x[2][i]));
        }
        y[i] = r;
      }
      return;
  }
}

}  // namespace

void evaluate(const Elementwise& function, std::size_t n, const std::int64_t* const* x,
              std::int64_t* y) {
  switch (ir::info(function.op).kind) {
    case ir::FunctionKind::arithmetic:
      return whole_arithmetic(function, n, x, y);
    case ir::FunctionKind::division:
      return whole_division(function, n, x, y);
    case ir::FunctionKind::bits:
      return evaluate_bits(function, n, x, y);
    case ir::FunctionKind::comparison:  // these two are the caller's
    case ir::FunctionKind::choice:
    case ir::FunctionKind::real:
    case ir::FunctionKind::logic:
      unsupported(function, "integers");
  }
}

void evaluate(const Elementwise& function, std::size_t n, const std::uint8_t* const* x,
              std::uint8_t* y) {
  using Bool = std::uint8_t;
  const auto both = [&] { map2(n, x, y, [](Bool a, Bool b) { return static_cast<Bool>(a & b); }); };
  const auto either = [&] {
    map2(n, x, y, [](Bool a, Bool b) { return static_cast<Bool>(a | b); });
  };
  if (function.op == Op::min) return both();
  if (function.op == Op::max) return either();
  if (ir::info(function.op).kind != ir::FunctionKind::logic) unsupported(function, "booleans");
  switch (ir::as<ir::LogicFunction>(function.op)) {
    case ir::LogicFunction::logical_and:
      return both();
    case ir::LogicFunction::logical_or:
      return either();
    case ir::LogicFunction::logical_not:
      return map(n, x, y, [](Bool a) { return static_cast<Bool>(a ^ 1); });
  }
}

template <typename T>
void compare(const Elementwise& function, std::size_t n, const T* a, const T* b, std::uint8_t* y) {
  switch (ir::as<ir::ComparisonFunction>(function.op)) {
    case ir::ComparisonFunction::lt:
      for (std::size_t i = 0; i < n; ++i) y[i] = a[i] < b[i];
      return;
    case ir::ComparisonFunction::le:
      for (std::size_t i = 0; i < n; ++i) y[i] = a[i] <= b[i];
      return;
    case ir::ComparisonFunction::eq:
      for (std::size_t i = 0; i < n; ++i) y[i] = a[i] == b[i];
      return;
    case ir::ComparisonFunction::ne:
      for (std::size_t i = 0; i < n; ++i) y[i] = a[i] != b[i];
      return;
  }
}

template void compare(const Elementwise&, std::size_t, const float*, const float*, std::uint8_t*);
template void compare(const Elementwise&, std::size_t, const double*, const double*, std::uint8_t*);
template void compare(const Elementwise&, std::size_t, const std::int64_t*, const std::int64_t*,
                      std::uint8_t*);
template void compare(const Elementwise&, std::size_t, const std::uint8_t*, const std::uint8_t*,
                      std::uint8_t*);

template <typename From, typename To>
void convert(const Elementwise& function, std::size_t count, const From* source, To* result) {
  constexpr bool to_integer = std::is_same_v<To, std::int64_t>;
  if constexpr (std::is_same_v<To, std::uint8_t>) {
    for (std::size_t i = 0; i < count; ++i) result[i] = source[i] != 0;
  } else if constexpr (to_integer && std::is_floating_point_v<From>) {
    const std::int64_t low = lowest(function.dtype), high = highest(function.dtype);
    for (std::size_t i = 0; i < count; ++i) {
      const double nearest = std::nearbyint(static_cast<double>(source[i]));
      result[i] = nearest != nearest                     ? 0
                  : nearest <= static_cast<double>(low)  ? low
                  : nearest >= static_cast<double>(high) ? high
                                                         : static_cast<std::int64_t>(nearest);
    }
  } else {
    const IntegerRange range = range_of(function.dtype);
    const bool saturates = is_memory_format(function.dtype);
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (to_integer) {
        const std::int64_t value = source[i];
        result[i] = saturates ? std::clamp(value, range.low, range.high) : value;
        if (!saturates) check_fits(function.dtype, value, function.op, function.where);
      } else {
        result[i] = static_cast<To>(source[i]);
      }
    }
    if constexpr (std::is_same_v<To, float>) {
      if (function.dtype != DType::f32) round_to(function.dtype, result, count);
    }
  }
}

#define TW_CONVERT(From, To) \
  template void convert(const Elementwise&, std::size_t, const From*, To*);
#define TW_CONVERT_FROM(From)    \
  TW_CONVERT(From, float)        \
  TW_CONVERT(From, double)       \
  TW_CONVERT(From, std::int64_t) \
  TW_CONVERT(From, std::uint8_t)
TW_CONVERT_FROM(float)
TW_CONVERT_FROM(double)
TW_CONVERT_FROM(std::int64_t)
TW_CONVERT_FROM(std::uint8_t)
#undef TW_CONVERT_FROM
#undef TW_CONVERT

template <typename T>
T reduce_identity(Op function, DType dtype) {
  if (function == Op::add) return 0;
  if constexpr (std::is_floating_point_v<T>) {
    const T infinity = std::numeric_limits<T>::infinity();
    return function == Op::max ? -infinity : infinity;
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    return function == Op::min;
  } else {
    return function == Op::max ? lowest(dtype) : highest(dtype);
  }
}
template float reduce_identity(Op, DType);
template double reduce_identity(Op, DType);
template std::int64_t reduce_identity(Op, DType);
template std::uint8_t reduce_identity(Op, DType);

void check_fits(DType dtype, std::int64_t value, Op op, SourceLocation where) {
  if (value < lowest(dtype) || value > highest(dtype)) {
    overflow({op, dtype, where}, std::to_string(value));
  }
}

}  // namespace tilewright::simulator
