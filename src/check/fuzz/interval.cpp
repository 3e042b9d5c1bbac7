#include "check/fuzz/interval.h"

#include <algorithm>
#include <cfloat>

#include "support/number_formats.h"

namespace tilewright::checks::fuzz {
namespace {

using ir::Op;

constexpr double kSmallest = 0x1p-125;  // results below the smallest normal f32 may be flushed

double floor_divide(double a, double b) { return std::floor(a / b); }

double bits(Op op, std::int64_t a, std::int64_t b) {
  const auto whole = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const bool exceeds = b < 0 || b > 31;
  switch (ir::as<ir::BitFunction>(op)) {
    case ir::BitFunction::bit_and:
      return whole(a & b);
    case ir::BitFunction::bit_or:
      return whole(a | b);
    case ir::BitFunction::bit_xor:
      return whole(a ^ b);
    case ir::BitFunction::bit_not:
      return whole(~a);
    case ir::BitFunction::shift_left:
      return exceeds ? 0 : whole(a * (std::int64_t{1} << b));
    case ir::BitFunction::shift_right:
      return exceeds ? -(a < 0) : std::floor(static_cast<double>(a) / std::exp2(b));
  }
  throw Undecided();
}

double whole_arithmetic(Op op, double a, double b) {
  switch (ir::as<ir::ArithmeticFunction>(op)) {
    case ir::ArithmeticFunction::add:
      return a + b;
    case ir::ArithmeticFunction::sub:
      return a - b;
    case ir::ArithmeticFunction::mul:
      return a * b;
    case ir::ArithmeticFunction::div:
      return floor_divide(a, b);
    case ir::ArithmeticFunction::min:
      return std::min(a, b);
    case ir::ArithmeticFunction::max:
      return std::max(a, b);
    case ir::ArithmeticFunction::neg:
      return -a;
    case ir::ArithmeticFunction::abs:
      return std::abs(a);
    case ir::ArithmeticFunction::fma:
      break;
  }
  throw Undecided();
}

Interval integers(Op op, const Interval* x) {
  for (int i = 0; i < ir::info(op).arity; ++i) {
    if (!x[i].exact()) throw Undecided();
  }
  const double a = x[0].lo, b = x[1].lo;
  const auto value = [&]() -> double {
    switch (ir::info(op).kind) {
      case ir::FunctionKind::arithmetic:
        return whole_arithmetic(op, a, b);
      case ir::FunctionKind::division:
        return op == Op::mod ? a - b * floor_divide(a, b) : -floor_divide(-a, b);
      case ir::FunctionKind::bits:
        return bits(op, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
      case ir::FunctionKind::real:
      case ir::FunctionKind::comparison:
      case ir::FunctionKind::logic:
      case ir::FunctionKind::choice:  // a cast has none that is the same for every dtype
        break;
    }
    throw Undecided();
  }();
  // What leaves its dtype has no meaning.
  if (!(std::abs(value) <= INT32_MAX)) throw Undecided();
  return {value, value};
}

Interval product(Interval a, Interval b) {
  const double p[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  if (std::any_of(p, p + 4, [](double v) { return std::isnan(v); })) return kAnything;
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Interval sum(Interval a, Interval b) {
  const Interval s{a.lo + b.lo, a.hi + b.hi};
  return s.anything() ? kAnything : s;
}

Interval quotient(Interval a, Interval b) {
  if (b.lo <= kSmallest && b.hi >= -kSmallest) return kAnything;
  return product(a, {1 / b.hi, 1 / b.lo});
}

template <typename F>
Interval rising(Interval x, double least, F f) {
  if (x.lo < least) return kAnything;
  return {f(x.lo), f(x.hi)};
}

Interval truth(bool surely, bool possibly) { return {surely ? 1.0 : 0.0, possibly ? 1.0 : 0.0}; }

Interval compared(Op op, Interval a, Interval b) {
  if (a.anything() || b.anything()) return {0, 1};
  const bool same = a.exact() && b.exact() && a.lo == b.lo;
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  switch (ir::as<ir::ComparisonFunction>(op)) {
    case ir::ComparisonFunction::lt:
      return truth(a.hi < b.lo, a.lo < b.hi);
    case ir::ComparisonFunction::le:
      return truth(a.hi <= b.lo, a.lo <= b.hi);
    case ir::ComparisonFunction::eq:
      return truth(same, !apart);
    case ir::ComparisonFunction::ne:
      break;
  }
  return truth(apart, !same);
}

// sin(x + shift): from the ends, and 1 or -1 where a crest or a trough lies between them.
Interval wave(Interval x, double shift, double error) {
  constexpr double kPi = 3.14159265358979323846, kMost = 1 << 20;
  if (x.magnitude() > kMost) return kAnything;  // the reduction of the argument goes no further
  x = {x.lo + shift, x.hi + shift};
  const auto contains = [&](double point) {
    return std::floor((x.hi - point) / (2 * kPi)) >= std::ceil((x.lo - point) / (2 * kPi));
  };
  const double a = std::sin(x.lo), b = std::sin(x.hi);
  return {(contains(-kPi / 2) ? -1 : std::min(a, b)) - error,
          (contains(kPi / 2) ? 1 : std::max(a, b)) + error};
}

Interval arithmetic(Op op, const Interval* x, DType dtype, const Precision& p) {
  const Interval a = x[0];
  const auto rounded = [&](Interval r) { return widened(r, p.arithmetic, dtype); };
  switch (ir::as<ir::ArithmeticFunction>(op)) {
    case ir::ArithmeticFunction::add:
      return rounded(sum(a, x[1]));
    case ir::ArithmeticFunction::sub:
      return rounded(sum(a, {-x[1].hi, -x[1].lo}));
    case ir::ArithmeticFunction::mul:
      return rounded(product(a, x[1]));
    case ir::ArithmeticFunction::fma:
      return rounded(sum(widened(product(a, x[1]), p.arithmetic, f32), x[2]));
    case ir::ArithmeticFunction::div:
      return widened(quotient(a, x[1]), p.function, dtype);
    case ir::ArithmeticFunction::min:
      return {std::min(a.lo, x[1].lo), std::min(a.hi, x[1].hi)};
    case ir::ArithmeticFunction::max:
      return {std::max(a.lo, x[1].lo), std::max(a.hi, x[1].hi)};
    case ir::ArithmeticFunction::neg:
      return {-a.hi, -a.lo};
    case ir::ArithmeticFunction::abs:
      if (a.lo >= 0) return a;
      if (a.hi <= 0) return {-a.hi, -a.lo};
      return {0, a.magnitude()};
  }
  return kAnything;
}

// Some of these CUDA's library computes, or the compiler by a reduction.
Interval real_function(Op op, Interval a, DType dtype, const Precision& p) {
  const auto function = [&](Interval r) { return widened(r, p.function, dtype); };
  const auto power = [&](Interval r) {
    return widened(r, p.function + p.exponent * a.magnitude(), dtype);
  };
  switch (ir::as<ir::RealFunction>(op)) {
    case ir::RealFunction::rcp:
      return function(quotient({1, 1}, a));
    case ir::RealFunction::exp:
      return power(rising(a, -INFINITY, [](double v) { return std::exp(v); }));
    case ir::RealFunction::exp2:
      return power(rising(a, -INFINITY, [](double v) { return std::exp2(v); }));
    case ir::RealFunction::exp2_polynomial: {
      constexpr double kOff = 4e-6, kLeast = 0x1p-126;
      const Interval r = rising(a, -INFINITY, [](double v) { return std::exp2(v); });
      return widened({r.lo - kLeast, r.hi}, kOff, dtype);
    }
    case ir::RealFunction::log:
    case ir::RealFunction::log2: {
      const bool two = op == Op::log2;
      if (a.lo <= kSmallest) return kAnything;
      Interval r = rising(a, 0, [&](double v) { return two ? std::log2(v) : std::log(v); });
      // Near 1 the error of the result is an absolute one.
      return widened({r.lo - p.function, r.hi + p.function}, p.function, dtype);
    }
    case ir::RealFunction::sqrt:
      return function(rising(a, 0, [](double v) { return std::sqrt(v); }));
    case ir::RealFunction::rsqrt:
      if (a.lo <= kSmallest) return kAnything;
      return function({1 / std::sqrt(a.hi), 1 / std::sqrt(a.lo)});
    case ir::RealFunction::tanh:
      return widened(rising(a, -INFINITY, [](double v) { return std::tanh(v); }), p.tanh, dtype);
    case ir::RealFunction::log1p:
      if (a.lo <= kSmallest - 1) return kAnything;
      return function(rising(a, -1, [](double v) { return std::log1p(v); }));
    case ir::RealFunction::expm1:
      return function(rising(a, -INFINITY, [](double v) { return std::expm1(v); }));
    case ir::RealFunction::erf:  // twice the others' error on the CPU
      return widened(rising(a, -INFINITY, [](double v) { return std::erf(v); }), 2 * p.function,
                     dtype);
    case ir::RealFunction::sin:
      return widened(wave(a, 0, p.angle), p.arithmetic, dtype);
    case ir::RealFunction::cos:
      return widened(wave(a, 1.57079632679489661923, p.angle), p.arithmetic, dtype);
    case ir::RealFunction::floor:
      return {std::floor(a.lo), std::floor(a.hi)};
    case ir::RealFunction::ceil:
      return {std::ceil(a.lo), std::ceil(a.hi)};
    case ir::RealFunction::rint:
      return {std::nearbyint(a.lo), std::nearbyint(a.hi)};
  }
  return kAnything;
}

Interval logic(Op op, const Interval* x) {
  switch (ir::as<ir::LogicFunction>(op)) {
    case ir::LogicFunction::logical_and:
      return {std::min(x[0].lo, x[1].lo), std::min(x[0].hi, x[1].hi)};
    case ir::LogicFunction::logical_or:
      return {std::max(x[0].lo, x[1].lo), std::max(x[0].hi, x[1].hi)};
    case ir::LogicFunction::logical_not:
      return {1 - x[0].hi, 1 - x[0].lo};
  }
  return kAnything;
}

}  // namespace

Precision Precision::of_gpu() {
  Precision p;
  p.function = 0x1p-20;
  p.exponent = 0x1p-22;
  p.tanh = 0x1p-10;
  p.angle = 0x1p-20;
  p.sum = 0x1p-21;
  p.narrow_sum = 0x1p-12;
  return p;
}

Interval widened(Interval x, double relative, DType dtype) {
  if (x.anything()) return kAnything;
  if (x.exact() && std::isinf(x.lo)) return x;
  const double error = relative == 0 ? 0 : relative * x.magnitude() + kSmallest;
  x = {x.lo - error, x.hi + error};
  if (!(x.magnitude() <= FLT_MAX)) return kAnything;
  if (dtype == f32) return x;
  // The narrow formats: f8e4m3 saturates, the others overflow.
  const double low = round_to(dtype, static_cast<float>(x.lo)),
               high = round_to(dtype, static_cast<float>(x.hi));
  if (dtype == f8e4m3 && x.magnitude() > 448) return kAnything;
  x = {std::min(x.lo, low), std::max(x.hi, high)};
  return std::isinf(x.magnitude()) ? kAnything : x;
}

Interval hull(Interval a, Interval b) {
  if (a.anything() || b.anything()) return kAnything;
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval evaluate(Op op, const Interval* x, DType dtype, const Precision& precision) {
  const ir::OpInfo& record = ir::info(op);
  if (record.kind == ir::FunctionKind::comparison) return compared(op, x[0], x[1]);
  if (record.kind == ir::FunctionKind::logic) return logic(op, x);
  if (op == Op::select) {
    if (x[0].exact()) return x[0].lo != 0 ? x[1] : x[2];
    return hull(x[1], x[2]);
  }
  if (is_integer(dtype)) return integers(op, x);
  for (int i = 0; i < record.arity; ++i) {
    if (x[i].anything()) return kAnything;
  }
  if (record.kind == ir::FunctionKind::arithmetic) return arithmetic(op, x, dtype, precision);
  return record.kind == ir::FunctionKind::real ? real_function(op, x[0], dtype, precision)
                                               : kAnything;
}

}  // namespace tilewright::checks::fuzz
