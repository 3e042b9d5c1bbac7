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

// 2^x by the instructions of the printed kernel: 2^floor(x) times a polynomial of what is left.
TW_INLINE float exp2_polynomial_of(float x) {
  const float limited = x < -127.0f ? -127.0f : x > 128.0f ? 128.0f : x;  // a NaN stays
  const float whole = std::floor(limited);
  const float rest = limited - whole;
  float sum = std::fma(rest, 0x1.b7f834p-7f, 0x1.abf8p-5f);
  sum = std::fma(sum, rest, 0x1.ee245ep-3f);
  sum = std::fma(sum, rest, 0x1.62d6c6p-1f);
  sum = std::fma(sum, rest, 1.0f);
  // -127 becomes 0, and 128 infinity.
  const auto exponent = static_cast<std::uint32_t>(whole == whole ? whole + 127 : 0);
  return sum * std::bit_cast<float>(exponent << 23);
}
TW_INLINE double exp2_polynomial_of(double x) { return std::exp2(x); }

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

template <typename T>
TW_INLINE void evaluate_arithmetic(Op op, std::size_t n, const T* const* x, T* y) {
  switch (ir::as<ir::ArithmeticFunction>(op)) {
    case ir::ArithmeticFunction::add:
      return each2(n, x, y, [](T a, T b) { return a + b; });
    case ir::ArithmeticFunction::sub:
      return each2(n, x, y, [](T a, T b) { return a - b; });
    case ir::ArithmeticFunction::mul:
      return each2(n, x, y, [](T a, T b) { return a * b; });
    case ir::ArithmeticFunction::div:
      return each2(n, x, y, [](T a, T b) { return a / b; });
    case ir::ArithmeticFunction::min:
      return each2(n, x, y, [](T a, T b) { return smaller(a, b); });
    case ir::ArithmeticFunction::max:
      return each2(n, x, y, [](T a, T b) { return larger(a, b); });
    case ir::ArithmeticFunction::fma:
      return each3(n, x, y, [](T a, T b, T c) { return std::fma(a, b, c); });
    case ir::ArithmeticFunction::neg:
      return each(n, x, y, [](T a) { return -a; });
    case ir::ArithmeticFunction::abs:
      return each(n, x, y, [](T a) { return std::abs(a); });
  }
}

// Functions of the C library are computed element by element on every machine.
template <typename T>
TW_INLINE void evaluate_real(Op op, std::size_t n, const T* const* x, T* y) {
  switch (ir::as<ir::RealFunction>(op)) {
    case ir::RealFunction::exp:
      return each(n, x, y, [](T a) { return std::exp(a); });
    case ir::RealFunction::exp2:
      return each(n, x, y, [](T a) { return exp2_of(a); });
    case ir::RealFunction::exp2_polynomial:
      return each(n, x, y, [](T a) { return exp2_polynomial_of(a); });
    case ir::RealFunction::log:
      return each(n, x, y, [](T a) { return std::log(a); });
    case ir::RealFunction::log2:
      return each(n, x, y, [](T a) { return std::log2(a); });
    case ir::RealFunction::sqrt:
      return each(n, x, y, [](T a) { return std::sqrt(a); });
    case ir::RealFunction::rsqrt:
      return each(n, x, y, [](T a) { return static_cast<T>(1 / std::sqrt(double{a})); });
    case ir::RealFunction::rcp:
      return each(n, x, y, [](T a) { return 1 / a; });
    case ir::RealFunction::tanh:
      return each(n, x, y, [](T a) { return std::tanh(a); });
    case ir::RealFunction::log1p:
      return each(n, x, y, [](T a) { return std::log1p(a); });
    case ir::RealFunction::expm1:
      return each(n, x, y, [](T a) { return std::expm1(a); });
    case ir::RealFunction::erf:
      return each(n, x, y, [](T a) { return std::erf(a); });
    case ir::RealFunction::sin:
      return each(n, x, y, [](T a) { return std::sin(a); });
    case ir::RealFunction::cos:
      return each(n, x, y, [](T a) { return std::cos(a); });
    case ir::RealFunction::floor:
      return each(n, x, y, [](T a) { return std::floor(a); });
    case ir::RealFunction::ceil:
      return each(n, x, y, [](T a) { return std::ceil(a); });
    case ir::RealFunction::rint:
      return each(n, x, y, [](T a) { return std::nearbyint(a); });
  }
}

// Whether the function is one of these.
template <typename T>
TW_INLINE bool evaluate_floats(Op op, std::size_t n, const T* const* x, T* y) {
  switch (ir::info(op).kind) {
    case ir::FunctionKind::arithmetic:
      evaluate_arithmetic(op, n, x, y);
      return true;
    case ir::FunctionKind::real:
      evaluate_real(op, n, x, y);
      return true;
    case ir::FunctionKind::comparison:  // these two are the caller's
    case ir::FunctionKind::choice:
    case ir::FunctionKind::division:
    case ir::FunctionKind::logic:
    case ir::FunctionKind::bits:
      break;
  }
  return false;
}

TW_VECTOR_CLONES bool evaluate_singles(Op op, std::size_t n, const float* const* x, float* y) {
  return evaluate_floats(op, n, x, y);
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
  if (op == Op::add) {
    fold_rows(rows, width, x, y, [](float a, float b) { return a + b; });
  } else if (op == Op::min) {
    fold_rows(rows, width, x, y, [](float a, float b) { return smaller(a, b); });
  } else if (op == Op::max) {
    fold_rows(rows, width, x, y, [](float a, float b) { return larger(a, b); });
  } else {
    return false;
  }
  return true;
}

// Functions that CUDA has as an instruction of another one. Its exponentials have no subnormals.
bool evaluate_by_instructions(Op op, std::size_t n, const float* const* x, float* y) {
  const float* const in_place[] = {y};
  const auto first = [&](auto f) {
    for (std::size_t i = 0; i < n; ++i) y[i] = f(x[0][i]);
  };
  if (op == Op::exp || op == Op::exp2) {
    first([op](float a) { return op == Op::exp ? a * 1.44269504f : a; });
    evaluate_singles(Op::exp2, n, in_place, y);
    for (std::size_t i = 0; i < n; ++i) y[i] = y[i] < 0x1p-126f ? 0.0f : y[i];
    return true;
  }
  if (op == Op::log) {
    evaluate_singles(Op::log2, n, x, y);
    for (std::size_t i = 0; i < n; ++i) y[i] *= 0.693147181f;
    return true;
  }
  // The others are instructions, or made of exact ones.
  if (op != Op::sin && op != Op::cos) return false;
  first([](float a) {
    const float turns = std::nearbyint(a * 0.159154943f);
    return std::fma(turns, 1.74845553e-7f, std::fma(turns, -6.28318548f, a));
  });
  return evaluate_singles(op, n, in_place, y);
}

}  // namespace

void evaluate(const Elementwise& function, std::size_t count, const float* const* operands,
              float* result) {
  const bool is_done =
      function.by_instructions && evaluate_by_instructions(function.op, count, operands, result);
  if (!is_done && !evaluate_singles(function.op, count, operands, result)) no_such_float(function);
  if (function.dtype != DType::f32) round_to(function.dtype, result, count);
}

void fold(const Elementwise& function, std::size_t rows, std::size_t width, const float* const* x,
          float* result) {
  if (function.dtype == DType::f32 && fold_singles(function.op, rows, width, x, result)) return;
  fold<float>(function, rows, width, x, result);
}

void evaluate(const Elementwise& function, std::size_t count, const double* const* operands,
              double* result) {
  if (!evaluate_floats(function.op, count, operands, result)) no_such_float(function);
}

}  // namespace tilewright::simulator
