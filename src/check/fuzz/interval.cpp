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
  switch (op) {
    case Op::bit_and:
      return whole(a & b);
    case Op::bit_or:
      return whole(a | b);
    case Op::bit_xor:
      return whole(a ^ b);
    case Op::bit_not:
      return whole(~a);
    case Op::shift_left:
      return exceeds ? 0 : whole(a * (std::int64_t{1} << b));
    case Op::shift_right:
      return exceeds ? -(a < 0) : std::floor(static_cast<double>(a) / std::exp2(b));
    default:
      throw Undecided();
  }
}

Interval integers(Op op, const Interval* x) {
  for (int i = 0; i < ir::info(op).arity; ++i) {
    if (!x[i].exact()) throw Undecided();
  }
  const double a = x[0].lo, b = x[1].lo;
  const auto value = [&]() -> double {
    switch (op) {
      case Op::add:
        return a + b;
      case Op::sub:
        return a - b;
      case Op::mul:
        return a * b;
      case Op::div:
        return floor_divide(a, b);
      case Op::ceildiv:
        return -floor_divide(-a, b);
      case Op::mod:
        return a - b * floor_divide(a, b);
      case Op::min:
        return std::min(a, b);
      case Op::max:
        return std::max(a, b);
      case Op::neg:
        return -a;
      case Op::abs:
        return std::abs(a);
      default:
        return bits(op, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    }
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

bool is_comparison(Op op) { return op == Op::lt || op == Op::le || op == Op::eq || op == Op::ne; }

Interval truth(bool surely, bool possibly) { return {surely ? 1.0 : 0.0, possibly ? 1.0 : 0.0}; }

Interval compared(Op op, Interval a, Interval b) {
  if (a.anything() || b.anything()) return {0, 1};
  const bool same = a.exact() && b.exact() && a.lo == b.lo;
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  switch (op) {
    case Op::lt:
      return truth(a.hi < b.lo, a.lo < b.hi);
    case Op::le:
      return truth(a.hi <= b.lo, a.lo <= b.hi);
    case Op::eq:
      return truth(same, !apart);
    default:
      return truth(apart, !same);
  }
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

// The functions of one operand that CUDA's library computes, or the compiler by a reduction.
Interval of_library(Op op, Interval a, DType dtype, const Precision& p) {
  const auto function = [&](Interval r) { return widened(r, p.function, dtype); };
  switch (op) {
    case Op::log1p:
      if (a.lo <= kSmallest - 1) return kAnything;
      return function(rising(a, -1, [](double v) { return std::log1p(v); }));
    case Op::expm1:
      return function(rising(a, -INFINITY, [](double v) { return std::expm1(v); }));
    case Op::erf:
      return function(rising(a, -INFINITY, [](double v) { return std::erf(v); }));
    case Op::sin:
      return widened(wave(a, 0, p.angle), p.arithmetic, dtype);
    case Op::cos:
      return widened(wave(a, 1.57079632679489661923, p.angle), p.arithmetic, dtype);
    case Op::floor:
      return {std::floor(a.lo), std::floor(a.hi)};
    case Op::ceil:
      return {std::ceil(a.lo), std::ceil(a.hi)};
    case Op::rint:
      return {std::nearbyint(a.lo), std::nearbyint(a.hi)};
    default:
      return kAnything;
  }
}

Interval reals(Op op, const Interval* x, DType dtype, const Precision& p) {
  const Interval a = x[0];
  const auto rounded = [&](Interval r) { return widened(r, p.arithmetic, dtype); };
  const auto function = [&](Interval r) { return widened(r, p.function, dtype); };
  const auto power = [&](Interval r) {
    return widened(r, p.function + p.exponent * a.magnitude(), dtype);
  };
  switch (op) {
    case Op::add:
      return rounded(sum(a, x[1]));
    case Op::sub:
      return rounded(sum(a, {-x[1].hi, -x[1].lo}));
    case Op::mul:
      return rounded(product(a, x[1]));
    case Op::fma:
      return rounded(sum(widened(product(a, x[1]), p.arithmetic, f32), x[2]));
    case Op::div:
      return function(quotient(a, x[1]));
    case Op::rcp:
      return function(quotient({1, 1}, a));
    case Op::min:
      return {std::min(a.lo, x[1].lo), std::min(a.hi, x[1].hi)};
    case Op::max:
      return {std::max(a.lo, x[1].lo), std::max(a.hi, x[1].hi)};
    case Op::neg:
      return {-a.hi, -a.lo};
    case Op::abs:
      if (a.lo >= 0) return a;
      if (a.hi <= 0) return {-a.hi, -a.lo};
      return {0, a.magnitude()};
    case Op::exp:
      return power(rising(a, -INFINITY, [](double v) { return std::exp(v); }));
    case Op::exp2:
      return power(rising(a, -INFINITY, [](double v) { return std::exp2(v); }));
    case Op::log:
    case Op::log2: {
      const bool two = op == Op::log2;
      if (a.lo <= kSmallest) return kAnything;
      Interval r = rising(a, 0, [&](double v) { return two ? std::log2(v) : std::log(v); });
      // Near 1 the error of the result is an absolute one.
      return widened({r.lo - p.function, r.hi + p.function}, p.function, dtype);
    }
    case Op::sqrt:
      return function(rising(a, 0, [](double v) { return std::sqrt(v); }));
    case Op::rsqrt: {
      if (a.lo <= kSmallest) return kAnything;
      return function({1 / std::sqrt(a.hi), 1 / std::sqrt(a.lo)});
    }
    case Op::tanh:
      return widened(rising(a, -INFINITY, [](double v) { return std::tanh(v); }), p.tanh, dtype);
    default:
      return of_library(op, a, dtype, p);
  }
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
  if (is_comparison(op)) return compared(op, x[0], x[1]);
  switch (op) {
    case Op::logical_and:
      return {std::min(x[0].lo, x[1].lo), std::min(x[0].hi, x[1].hi)};
    case Op::logical_or:
      return {std::max(x[0].lo, x[1].lo), std::max(x[0].hi, x[1].hi)};
    case Op::logical_not:
      return {1 - x[0].hi, 1 - x[0].lo};
    case Op::select:
      if (x[0].exact()) return x[0].lo != 0 ? x[1] : x[2];
      return hull(x[1], x[2]);
    default:
      break;
  }
  if (is_integer(dtype)) return integers(op, x);
  for (int i = 0; i < ir::info(op).arity; ++i) {
    if (x[i].anything()) return kAnything;
  }
  return reals(op, x, dtype, precision);
}

}  // namespace tilewright::checks::fuzz
