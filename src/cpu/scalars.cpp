#include "cpu/scalars.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ir/compare.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::cpu {
namespace {

using ir::Op;

std::string name_of_function(const Compute& compute) {
  return std::string(ir::info(compute.function).name);
}

[[noreturn]] void overflows(const Compute& compute, const std::string& operands) {
  Diagnostic(compute.where, name_of_function(compute) + " of " + operands + " overflows " +
                                std::string(name_of(compute.dtype)))
      .fix(compute.dtype == DType::i32 ? "an Index is i32: keep each of its steps below 2^31"
                                       : "use smaller values")
      .raise();
}

[[noreturn]] void unknown(const Compute& compute) {
  Diagnostic(compute.where,
             name_of_function(compute) + " of scalars of " + std::string(name_of(compute.dtype)),
             ErrorKind::internal)
      .raise();
}

// Whole numbers of 64 bits, and whether one leaves them.
struct Whole {
  std::int64_t number = 0;
  bool overflows = false;
};

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Whole divide(const Compute& compute, std::int64_t a, std::int64_t b) {
  if (b == 0) {
    Diagnostic(compute.where,
               name_of_function(compute) + ": " + std::to_string(a) + " is divided by zero")
        .fix("guard the divisor with max(divisor, 1), or with when(divisor > 0)")
        .raise();
  }
  if (a == INT64_MIN && b == -1) return {0, compute.function != Op::mod};
  const std::int64_t quotient = floor_divide(a, b);
  if (compute.function == Op::div) return {quotient};
  if (compute.function == Op::mod) return {a - quotient * b};
  return {quotient + (a % b != 0 ? 1 : 0)};
}

// Shifts by less than 0 or at least the dtype's bits leave nothing but the sign.
std::int64_t shift(const Compute& compute, std::int64_t a, std::int64_t amount) {
  const bool exceeds = amount < 0 || amount >= 8 * size_of(compute.dtype);
  if (compute.function == Op::shift_right) return a >> (exceeds ? 63 : amount);
  if (exceeds) return 0;
  const auto shifted = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << amount);
  return compute.dtype == DType::i32 ? static_cast<std::int32_t>(shifted) : shifted;
}

Whole negative(std::int64_t a) {
  Whole result;
  result.overflows = __builtin_sub_overflow(std::int64_t{0}, a, &result.number);
  return result;
}

Whole whole_arithmetic(const Compute& compute, std::int64_t a, std::int64_t b) {
  Whole result;
  switch (ir::as<ir::ArithmeticFunction>(compute.function)) {
    case ir::ArithmeticFunction::add:
      result.overflows = __builtin_add_overflow(a, b, &result.number);
      return result;
    case ir::ArithmeticFunction::sub:
      result.overflows = __builtin_sub_overflow(a, b, &result.number);
      return result;
    case ir::ArithmeticFunction::mul:
      result.overflows = __builtin_mul_overflow(a, b, &result.number);
      return result;
    case ir::ArithmeticFunction::div:
      return divide(compute, a, b);
    case ir::ArithmeticFunction::min:
      return {std::min(a, b)};
    case ir::ArithmeticFunction::max:
      return {std::max(a, b)};
    case ir::ArithmeticFunction::neg:
      return negative(a);
    case ir::ArithmeticFunction::abs:
      return a < 0 ? negative(a) : Whole{a};
    case ir::ArithmeticFunction::fma:  // of floats
      break;
  }
  unknown(compute);
}

std::int64_t bits(const Compute& compute, std::int64_t a, std::int64_t b) {
  switch (ir::as<ir::BitFunction>(compute.function)) {
    case ir::BitFunction::bit_and:
      return a & b;
    case ir::BitFunction::bit_or:
      return a | b;
    case ir::BitFunction::bit_xor:
      return a ^ b;
    case ir::BitFunction::bit_not:
      return ~a;
    case ir::BitFunction::shift_left:
    case ir::BitFunction::shift_right:
      return shift(compute, a, b);
  }
  unknown(compute);
}

std::int64_t logic(const Compute& compute, std::int64_t a, std::int64_t b) {
  switch (ir::as<ir::LogicFunction>(compute.function)) {
    case ir::LogicFunction::logical_and:
      return a & b;
    case ir::LogicFunction::logical_or:
      return a | b;
    case ir::LogicFunction::logical_not:
      return a ^ 1;
  }
  unknown(compute);
}

Whole evaluate_whole(const Compute& compute, std::int64_t a, std::int64_t b) {
  switch (ir::info(compute.function).kind) {
    case ir::FunctionKind::arithmetic:
      return whole_arithmetic(compute, a, b);
    case ir::FunctionKind::division:
      return divide(compute, a, b);
    case ir::FunctionKind::bits:
      return {bits(compute, a, b)};
    case ir::FunctionKind::logic:
      return {logic(compute, a, b)};
    case ir::FunctionKind::comparison:  // these two are the caller's
    case ir::FunctionKind::choice:
    case ir::FunctionKind::real:
      break;
  }
  unknown(compute);
}

float real_arithmetic(const Compute& compute, float a, float b, float c) {
  switch (ir::as<ir::ArithmeticFunction>(compute.function)) {
    case ir::ArithmeticFunction::add:
      return a + b;
    case ir::ArithmeticFunction::sub:
      return a - b;
    case ir::ArithmeticFunction::mul:
      return a * b;
    case ir::ArithmeticFunction::div:
      return a / b;
    case ir::ArithmeticFunction::min:
      return a < b || b != b ? a : b;
    case ir::ArithmeticFunction::max:
      return a > b || b != b ? a : b;
    case ir::ArithmeticFunction::fma:
      return std::fma(a, b, c);
    case ir::ArithmeticFunction::neg:
      return -a;
    case ir::ArithmeticFunction::abs:
      return std::fabs(a);
  }
  unknown(compute);
}

float evaluate_real(const Compute& compute, float a, float b, float c) {
  if (ir::info(compute.function).kind == ir::FunctionKind::arithmetic) {
    return real_arithmetic(compute, a, b, c);
  }
  switch (ir::as<ir::RealFunction>(compute.function)) {
    case ir::RealFunction::exp:
      return std::exp(a);
    case ir::RealFunction::exp2:
    case ir::RealFunction::exp2_polynomial:
      return std::exp2(a);
    case ir::RealFunction::log:
      return std::log(a);
    case ir::RealFunction::log2:
      return std::log2(a);
    case ir::RealFunction::sqrt:
      return std::sqrt(a);
    case ir::RealFunction::rsqrt:
      return static_cast<float>(1 / std::sqrt(double{a}));
    case ir::RealFunction::rcp:
      return 1 / a;
    case ir::RealFunction::tanh:
      return std::tanh(a);
    case ir::RealFunction::log1p:
      return std::log1p(a);
    case ir::RealFunction::expm1:
      return std::expm1(a);
    case ir::RealFunction::erf:
      return std::erf(a);
    case ir::RealFunction::sin:
      return std::sin(a);
    case ir::RealFunction::cos:
      return std::cos(a);
    case ir::RealFunction::floor:
      return std::floor(a);
    case ir::RealFunction::ceil:
      return std::ceil(a);
    case ir::RealFunction::rint:
      return std::nearbyint(a);
  }
  unknown(compute);
}

// To the nearest, ties to even; beyond the dtype its bound, and 0 of what is no number.
std::int64_t nearest_whole(DType dtype, float value) {
  const IntegerRange range = range_of(dtype);
  const double nearest = std::nearbyint(double{value});
  if (nearest != nearest) return 0;
  if (nearest <= static_cast<double>(range.low)) return range.low;
  if (nearest >= static_cast<double>(range.high)) return range.high;
  return static_cast<std::int64_t>(nearest);
}

Scalar cast(const Compute& compute, Scalar from) {
  Scalar result;
  if (is_float(compute.dtype)) {
    const float number = is_float(compute.from) ? from.real : static_cast<float>(from.whole);
    result.real = round_to(compute.dtype, number);
    return result;
  }
  if (is_float(compute.from)) {
    result.whole = nearest_whole(compute.dtype, from.real);
    return result;
  }
  const IntegerRange range = range_of(compute.dtype);
  result.whole = std::clamp(from.whole, range.low, range.high);
  if (result.whole != from.whole && !is_memory_format(compute.dtype)) {
    overflows(compute, std::to_string(from.whole));
  }
  return result;
}

}  // namespace

Scalar evaluate(const Compute& compute, const Scalar* scalars) {
  Scalar x[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (compute.operands[i] != kNone) x[i] = scalars[compute.operands[i]];
  }
  Scalar result;
  if (compute.function == Op::cast) return cast(compute, x[0]);
  if (compute.function == Op::select) return x[0].whole != 0 ? x[1] : x[2];
  const bool real = is_float(compute.dtype);
  if (ir::info(compute.function).is_comparison()) {
    result.whole = real ? ir::compare(compute.function, x[0].real, x[1].real)
                        : ir::compare(compute.function, x[0].whole, x[1].whole);
    return result;
  }
  if (real) {
    result.real = round_to(compute.dtype, evaluate_real(compute, x[0].real, x[1].real, x[2].real));
    return result;
  }
  const Whole whole = evaluate_whole(compute, x[0].whole, x[1].whole);
  if (compute.dtype != DType::boolean) {
    const IntegerRange range = range_of(compute.dtype);
    if (whole.overflows || whole.number < range.low || whole.number > range.high) {
      overflows(compute,
                std::to_string(x[0].whole) +
                    (compute.operands[1] == kNone ? "" : " and " + std::to_string(x[1].whole)));
    }
  }
  result.whole = whole.number;
  return result;
}

}  // namespace tilewright::cpu
