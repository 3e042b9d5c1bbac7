#include <bit>
#include <cmath>
#include <string>

#include "simulator/evaluate_elementwise.h"
#include "simulator/vector_clones.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

// Compiled without contraction of products and sums, so that every machine gives the same bits.
namespace tilewright::simulator {
namespace {

using ir::Op;

[[noreturn]] void no_such_float(const Elementwise& function) {
  Diagnostic(function.where, std::string(ir::info(function.op).name) + " of floats is not defined")
      .raise();
}

template <typename T>
TW_INLINE T smaller(T a, T b) {
  return a < b || b != b ? a : b;
}
template <typename T>
TW_INLINE T larger(T a, T b) {
  return a > b || b != b ? a : b;
}

// 2^x, within 0.501 units in the last place: 2^round(x) times a polynomial of what is left, which
// interpolates (2^f - 1) / f at the Chebyshev nodes of [-1/2, 1/2] and errs by 1.1e-10. The last
// conversion rounds to float, to its subnormals and to infinity.
TW_INLINE float exp2_of(float x) {
  constexpr double kCoefficients[] = {
      0x1.00a581594758ep-16, 0x1.443fffc90db59p-13, 0x1.5d879ead06a82p-10, 0x1.3b2a1b7152befp-7,
      0x1.c6b08d883dca1p-5,  0x1.ebfbe045f4d3cp-3,  0x1.62e42fefa39efp-1,  1.0};
  constexpr double kRound = 0x1.8p52;  // the sum's last bit is 1
  const double limited = x < -160.0f ? -160.0f : x > 130.0f ? 130.0f : x;  // a NaN stays
  const double rounded = limited + kRound;
  const double rest = limited - (rounded - kRound);
  double sum = kCoefficients[0];
  for (int i = 1; i < 8; ++i) sum = sum * rest + kCoefficients[i];
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(rounded) + 1023;
  return static_cast<float>(sum * std::bit_cast<double>(exponent << 52));
}
TW_INLINE double exp2_of(double x) { return std::exp2(x); }

template <typename T, typename F>
TW_INLINE void each(std::size_t count, const T* const* x, T* y, F f) {
  const T* const a = x[0];
  TW_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) y[i] = f(a[i]);
}
template <typename T, typename F>
TW_INLINE void each2(std::size_t count, const T* const* x, T* y, F f) {
  const T *const a = x[0], *const b = x[1];
  TW_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) y[i] = f(a[i], b[i]);
}
template <typename T, typename F>
TW_INLINE void each3(std::size_t count, const T* const* x, T* y, F f) {
  const T *const a = x[0], *const b = x[1], *const c = x[2];
  TW_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) y[i] = f(a[i], b[i], c[i]);
}

// Functions that every machine takes from the C library, element by element.
template <typename T>
TW_INLINE bool evaluate_library(Op op, std::size_t n, const T* const* x, T* y) {
  switch (op) {
    case Op::log1p:
      each(n, x, y, [](T a) { return std::log1p(a); });
      return true;
    case Op::expm1:
      each(n, x, y, [](T a) { return std::expm1(a); });
      return true;
    case Op::erf:
      each(n, x, y, [](T a) { return std::erf(a); });
      return true;
    case Op::sin:
      each(n, x, y, [](T a) { return std::sin(a); });
      return true;
    case Op::cos:
      each(n, x, y, [](T a) { return std::cos(a); });
      return true;
    case Op::floor:
      each(n, x, y, [](T a) { return std::floor(a); });
      return true;
    case Op::ceil:
      each(n, x, y, [](T a) { return std::ceil(a); });
      return true;
    case Op::rint:
      each(n, x, y, [](T a) { return std::nearbyint(a); });
      return true;
    default:
      return false;
  }
}

// Whether the function is one of these.
template <typename T>
TW_INLINE bool evaluate_real(Op op, std::size_t n, const T* const* x, T* y) {
  switch (op) {
    case Op::add:
      each2(n, x, y, [](T a, T b) { return a + b; });
      return true;
    case Op::sub:
      each2(n, x, y, [](T a, T b) { return a - b; });
      return true;
    case Op::mul:
      each2(n, x, y, [](T a, T b) { return a * b; });
      return true;
    case Op::div:
      each2(n, x, y, [](T a, T b) { return a / b; });
      return true;
    case Op::min:
      each2(n, x, y, [](T a, T b) { return smaller(a, b); });
      return true;
    case Op::max:
      each2(n, x, y, [](T a, T b) { return larger(a, b); });
      return true;
    case Op::fma:
      each3(n, x, y, [](T a, T b, T c) { return std::fma(a, b, c); });
      return true;
    case Op::neg:
      each(n, x, y, [](T a) { return -a; });
      return true;
    case Op::abs:
      each(n, x, y, [](T a) { return std::abs(a); });
      return true;
    case Op::exp:
      each(n, x, y, [](T a) { return std::exp(a); });
      return true;
    case Op::exp2:
      each(n, x, y, [](T a) { return exp2_of(a); });
      return true;
    case Op::log:
      each(n, x, y, [](T a) { return std::log(a); });
      return true;
    case Op::log2:
      each(n, x, y, [](T a) { return std::log2(a); });
      return true;
    case Op::sqrt:
      each(n, x, y, [](T a) { return std::sqrt(a); });
      return true;
    case Op::rsqrt:
      each(n, x, y, [](T a) { return static_cast<T>(1 / std::sqrt(double{a})); });
      return true;
    case Op::rcp:
      each(n, x, y, [](T a) { return 1 / a; });
      return true;
    case Op::tanh:
      each(n, x, y, [](T a) { return std::tanh(a); });
      return true;
    default:
      return evaluate_library(op, n, x, y);
  }
}

TW_VECTOR_CLONES bool evaluate_singles(Op op, std::size_t n, const float* const* x, float* y) {
  return evaluate_real(op, n, x, y);
}

template <typename F>
TW_INLINE void fold_rows(std::size_t rows, std::size_t width, const float* const* x, float* y,
                         F f) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const next = x[row];
    TW_INDEPENDENT
    for (std::size_t i = 0; i < width; ++i) y[i] = f(y[i], next[i]);
  }
}

// Whether the function is one of these.
TW_VECTOR_CLONES bool fold_singles(Op op, std::size_t rows, std::size_t width,
                                   const float* const* x, float* y) {
  switch (op) {
    case Op::add:
      fold_rows(rows, width, x, y, [](float a, float b) { return a + b; });
      return true;
    case Op::min:
      fold_rows(rows, width, x, y, [](float a, float b) { return smaller(a, b); });
      return true;
    case Op::max:
      fold_rows(rows, width, x, y, [](float a, float b) { return larger(a, b); });
      return true;
    default:
      return false;
  }
}

}  // namespace

void evaluate(const Elementwise& function, std::size_t count, const float* const* operands,
              float* result) {
  if (!evaluate_singles(function.op, count, operands, result)) no_such_float(function);
  if (function.dtype != DType::f32) round_to(function.dtype, result, count);
}

void fold(const Elementwise& function, std::size_t rows, std::size_t width, const float* const* x,
          float* result) {
  if (function.dtype == DType::f32 && fold_singles(function.op, rows, width, x, result)) return;
  fold<float>(function, rows, width, x, result);
}

void evaluate(const Elementwise& function, std::size_t count, const double* const* operands,
              double* result) {
  if (!evaluate_real(function.op, count, operands, result)) no_such_float(function);
}

}  // namespace tilewright::simulator
