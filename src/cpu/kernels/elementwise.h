#pragma once

#include <limits.h>

#include "cpu/kernels/real_functions.h"

// The elementwise functions on tiles.
namespace tilewright::cpu::TW_LEVEL {
namespace {

TW_INLINE std::int64_t blocks(std::int64_t columns) { return (columns + kBlock - 1) / kBlock; }

template <typename T>
TW_INLINE const T* row_of(const Operand& x, std::int64_t row) {
  return reinterpret_cast<const T*>(static_cast<const char*>(x.data) + row * x.row_stride);
}
template <typename T>
TW_INLINE T* row_of(const Result& y, std::int64_t row) {
  return reinterpret_cast<T*>(static_cast<char*>(y.data) + row * y.row_stride);
}

// A row of an operand: its elements, or one number that repeats.
struct MovingRow {
  const float* data;
  TW_INLINE Floats at(std::int64_t column) const { return load(data + column); }
};
struct RepeatedRow {
  Floats number;
  TW_INLINE Floats at(std::int64_t) const { return number; }
};
// Calls visit with what the row is: loops are compiled for both.
template <typename Visit>
TW_INLINE void with_row(const Operand& x, std::int64_t row, Visit visit) {
  const float* const data = row_of<float>(x, row);
  if (x.repeats) return visit(RepeatedRow{splat(*data)});
  visit(MovingRow{data});
}

// Asks for what is needed next, a few lines at a time: memory has so many requests under way, and
// more of them would be waited for.
class Asking {
 public:
  TW_INLINE explicit Asking(const Ahead* ahead) {
    if (ahead == nullptr) return;
    first_ = ahead->first;
    second_ = ahead->second;
    lines_ = (ahead->lines * kRound + 63) / 64;
  }
  static constexpr std::int64_t kRound = 4 * kLanes;
  TW_INLINE void next() {
    for (std::int64_t i = 0; i < lines_; ++i) {
      __builtin_prefetch(first_);
      __builtin_prefetch(second_);
      first_ += 64;
      second_ += 64;
    }
  }

 private:
  const char *first_ = nullptr, *second_ = nullptr;
  std::int64_t lines_ = 0;
};

// Calls visit(column) for all vectors of a row, four of them in a round.
template <typename Visit>
TW_INLINE void for_vectors(std::int64_t columns, Asking& asking, Visit visit) {
  std::int64_t i = 0;
  for (; i + Asking::kRound <= columns; i += Asking::kRound) {
    asking.next();
    unrolled<4>([&](auto v) { visit(i + v.value * kLanes); });
  }
  for (; i < columns; i += kLanes) visit(i);
}

template <typename F>
TW_INLINE void map_floats1(Shape shape, const Operand* x, Result y, F f) {
  Asking asking(shape.ahead);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    float* const to = row_of<float>(y, row);
    with_row(x[0], row, [&](auto a) {
      for_vectors(shape.columns, asking, [&](std::int64_t i) { store(to + i, f(a.at(i))); });
    });
  }
}

template <typename F>
TW_INLINE void map_floats2(Shape shape, const Operand* x, Result y, F f) {
  Asking asking(shape.ahead);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    float* const to = row_of<float>(y, row);
    with_row(x[0], row, [&](auto a) {
      with_row(x[1], row, [&](auto b) {
        for_vectors(shape.columns, asking,
                    [&](std::int64_t i) { store(to + i, f(a.at(i), b.at(i))); });
      });
    });
  }
}

template <typename F>
TW_INLINE void map_floats3(Shape shape, const Operand* x, Result y, F f) {
  Asking asking(shape.ahead);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    float* const to = row_of<float>(y, row);
    with_row(x[0], row, [&](auto a) {
      with_row(x[1], row, [&](auto b) {
        with_row(x[2], row, [&](auto c) {
          for_vectors(shape.columns, asking,
                      [&](std::int64_t i) { store(to + i, f(a.at(i), b.at(i), c.at(i))); });
        });
      });
    });
  }
}

// Columns that the loops below take at once: what repeats is written out that often.
constexpr std::int64_t kChunk = 256;

// A row of an operand, chunk by chunk.
template <typename T>
class Row {
 public:
  TW_INLINE Row(const Operand& x, std::int64_t row, std::int64_t columns)
      : data_(row_of<T>(x, row)) {
    if (!x.repeats) return;
    repeat(*data_, repeated_, columns < kChunk ? blocks(columns) * kBlock : kChunk);
    data_ = repeated_;
    step_ = 0;
  }
  TW_INLINE const T* chunk(std::int64_t column) const { return data_ + column * step_; }

 private:
  const T* data_;
  std::int64_t step_ = 1;
  alignas(64) T repeated_[kChunk];
};

// Calls visit(column, count) for chunks of whole blocks. The compiler makes vectors of its loops,
// and nothing for what is left of them where it sees that they are whole.
template <typename Visit>
TW_INLINE void for_chunks(std::int64_t columns, Visit visit) {
  const std::int64_t end = blocks(columns) * kBlock;
  for (std::int64_t column = 0; column < end; column += kChunk) {
    visit(column, (end - column < kChunk ? end - column : kChunk) & -kBlock);
  }
}

template <typename T, typename To, typename F>
TW_INLINE void map1(Shape shape, const Operand* x, Result y, F f) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Row<T> a(x[0], row, shape.columns);
    To* const to = row_of<To>(y, row);
    for_chunks(shape.columns, [&](std::int64_t column, std::int64_t count) {
      const T* const p = a.chunk(column);
      To* const r = to + column;
      TW_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) r[i] = f(p[i]);
    });
  }
}

template <typename T, typename To, typename F>
TW_INLINE void map2(Shape shape, const Operand* x, Result y, F f) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Row<T> a(x[0], row, shape.columns), b(x[1], row, shape.columns);
    To* const to = row_of<To>(y, row);
    for_chunks(shape.columns, [&](std::int64_t column, std::int64_t count) {
      const T *const p = a.chunk(column), *const q = b.chunk(column);
      To* const r = to + column;
      TW_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) r[i] = f(p[i], q[i]);
    });
  }
}

// Integers wrap: sums and products are made of numbers without signs.
template <typename T>
struct Integers;
template <>
struct Integers<std::int32_t> {
  using Unsigned = std::uint32_t;
};
template <>
struct Integers<std::int64_t> {
  using Unsigned = std::uint64_t;
};

// The quotient rounded toward 0, and 0 where there is none. Doubles hold every i32, and round a
// quotient of two of them to the same whole number; they need no guard against traps.
TW_INLINE std::int32_t quotient(std::int32_t a, std::int32_t b) {
  const double exact = static_cast<double>(a) / static_cast<double>(b == 0 ? 1 : b);
  const bool none = b == 0 || exact > INT32_MAX;
  return none ? 0 : static_cast<std::int32_t>(none ? 0.0 : exact);
}
TW_INLINE std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return b == 0 || (a == INT64_MIN && b == -1) ? 0 : a / b;
}
// a - b * quotient: what is left of a. All of it, where there is no quotient.
template <typename T>
TW_INLINE T remainder(T a, T b, T quotient) {
  using Unsigned = typename Integers<T>::Unsigned;
  return static_cast<T>(static_cast<Unsigned>(a) -
                        static_cast<Unsigned>(b) * static_cast<Unsigned>(quotient));
}
template <typename T>
TW_INLINE bool has_quotient(T a, T b) {
  const T lowest = sizeof(T) == 4 ? static_cast<T>(INT32_MIN) : static_cast<T>(INT64_MIN);
  return (b != 0) & !((a == lowest) & (b == -1));
}

template <typename T>
TW_INLINE T floor_divide(T a, T b) {
  const T whole = quotient(a, b), rest = remainder(a, b, whole);
  const bool lower = has_quotient(a, b) & (rest != 0) & ((a < 0) != (b < 0));
  return static_cast<T>(whole - (lower ? 1 : 0));
}
template <typename T>
TW_INLINE T ceil_divide(T a, T b) {
  const T whole = quotient(a, b), rest = remainder(a, b, whole);
  const bool higher = has_quotient(a, b) & (rest != 0) & ((a < 0) == (b < 0));
  return static_cast<T>(whole + (higher ? 1 : 0));
}
template <typename T>
TW_INLINE T modulo(T a, T b) {
  const T rest = remainder(a, b, quotient(a, b));
  const T shifted = static_cast<T>(((rest != 0) & ((rest < 0) != (b < 0))) ? rest + b : rest);
  return has_quotient(a, b) ? shifted : 0;
}

template <typename T>
TW_INLINE bool exceeds(T amount) {
  return (amount < 0) | (amount >= static_cast<T>(8 * sizeof(T)));
}
template <typename T>
TW_INLINE T shifted_left(T a, T amount) {
  using Unsigned = typename Integers<T>::Unsigned;
  const T limited = exceeds(amount) ? 0 : amount;
  const T result = static_cast<T>(static_cast<Unsigned>(a) << limited);
  return exceeds(amount) ? 0 : result;
}
template <typename T>
TW_INLINE T shifted_right(T a, T amount) {
  const T limited = exceeds(amount) ? static_cast<T>(8 * sizeof(T) - 1) : amount;
  return a >> limited;
}

// Each by itself, and as a function of vectors.
#define TW_FLOATS1(name, result)                                   \
  struct name##_vector {                                           \
    TW_INLINE Floats operator()(Floats a) const { return result; } \
  };                                                               \
  void name##_f32(Shape shape, const Operand* x, Result y) {       \
    map_floats1(shape, x, y, name##_vector{});                     \
  }
#define TW_FLOATS2(name, result)                                             \
  struct name##_vector {                                                     \
    TW_INLINE Floats operator()(Floats a, Floats b) const { return result; } \
  };                                                                         \
  void name##_f32(Shape shape, const Operand* x, Result y) {                 \
    map_floats2(shape, x, y, name##_vector{});                               \
  }
TW_FLOATS2(add, a + b)
TW_FLOATS2(sub, a - b)
TW_FLOATS2(mul, a* b)
TW_FLOATS2(div, a / b)
TW_FLOATS2(min, smaller(a, b))
TW_FLOATS2(max, larger(a, b))
TW_FLOATS1(neg, -a)
TW_FLOATS1(abs, magnitude(a))
TW_FLOATS1(exp, exp_of(a))
TW_FLOATS1(exp2, exp2_of(a))
TW_FLOATS1(log, log_of(a))
TW_FLOATS1(log2, log2_of(a))
TW_FLOATS1(sqrt, square_root(a))
TW_FLOATS1(rsqrt, rsqrt_of(a))
TW_FLOATS1(rcp, 1 / a)
TW_FLOATS1(tanh, tanh_of(a))
TW_FLOATS1(log1p, log1p_of(a))
TW_FLOATS1(expm1, expm1_of(a))
TW_FLOATS1(floor, whole<Whole::down>(a))
TW_FLOATS1(ceil, whole<Whole::up>(a))
TW_FLOATS1(rint, whole<Whole::nearest>(a))
#undef TW_FLOATS1
#undef TW_FLOATS2

// Of four vectors at once. Chains know the function by its type.
struct erf_vector {};
template <int count>
TW_INLINE void store_erf(const float* from, float* to) {
  Floats values[count];
  unrolled<count>([&](auto i) { values[i.value] = load(from + i.value * kLanes); });
  erf_of(values);
  unrolled<count>([&](auto i) { store(to + i.value * kLanes, values[i.value]); });
}
void erf_f32(Shape shape, const Operand* x, Result y) {
  Asking asking(shape.ahead);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Row<float> a(x[0], row, shape.columns);
    float* const to = row_of<float>(y, row);
    for_chunks(shape.columns, [&](std::int64_t column, std::int64_t count) {
      const float* const p = a.chunk(column);
      std::int64_t i = 0;
      for (; i + Asking::kRound <= count; i += Asking::kRound) {
        asking.next();
        store_erf<4>(p + i, to + column + i);
      }
      for (; i < count; i += kLanes) store_erf<1>(p + i, to + column + i);
    });
  }
}

// Rounded once on every machine.
#if !defined(__FMA__) && !defined(__aarch64__)
TW_APART Floats fma_by_lanes(Floats a, Floats b, Floats c) {
  for (int i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
#endif
struct fma_vector {
  TW_INLINE Floats operator()(Floats a, Floats b, Floats c) const {
#if defined(__FMA__) || defined(__aarch64__)
    return fused(a, b, c);
#else
    return fma_by_lanes(a, b, c);
#endif
  }
};
void fma_f32(Shape shape, const Operand* x, Result y) { map_floats3(shape, x, y, fma_vector{}); }

// Angles that are too large for doubles go to the C library.
template <typename F>
TW_INLINE void map_angles(Shape shape, const Operand* x, Result y, int quarter_turns, F exact) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Row<float> a(x[0], row, shape.columns);
    float* const to = row_of<float>(y, row);
    for_chunks(shape.columns, [&](std::int64_t column, std::int64_t count) {
      const float* const p = a.chunk(column);
      alignas(64) float angles[kChunk];
      int large = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const bool is_small = __builtin_fabsf(p[i]) <= kLargestAngle;
        angles[i] = is_small ? p[i] : 0;
        large |= is_small ? 0 : 1;
      }
      float result[kChunk];
      for (std::int64_t i = 0; i < count; ++i) result[i] = sine_of(angles[i], quarter_turns);
      for (std::int64_t i = 0; large && i < count; ++i) {
        if (!(__builtin_fabsf(p[i]) <= kLargestAngle)) result[i] = exact(p[i]);
      }
      __builtin_memcpy(to + column, result, static_cast<std::size_t>(count) * sizeof(float));
    });
  }
}
void sin_f32(Shape shape, const Operand* x, Result y) {
  map_angles(shape, x, y, 0, [](float a) { return __builtin_sinf(a); });
}
void cos_f32(Shape shape, const Operand* x, Result y) {
  map_angles(shape, x, y, 1, [](float a) { return __builtin_cosf(a); });
}

#define TW_MAP1(name, lane, From, To, result)                         \
  void name##_##lane(Shape shape, const Operand* x, Result y) {       \
    map1<From, To>(shape, x, y, [](From a) -> To { return result; }); \
  }
#define TW_MAP2(name, lane, From, To, result)                                 \
  void name##_##lane(Shape shape, const Operand* x, Result y) {               \
    map2<From, To>(shape, x, y, [](From a, From b) -> To { return result; }); \
  }
#define TW_COMPARISONS(lane, T)                      \
  TW_MAP2(lt, lane, T, std::uint8_t, a < b ? 1 : 0)  \
  TW_MAP2(le, lane, T, std::uint8_t, a <= b ? 1 : 0) \
  TW_MAP2(eq, lane, T, std::uint8_t, a == b ? 1 : 0) \
  TW_MAP2(ne, lane, T, std::uint8_t, a != b ? 1 : 0)
#define TW_INTEGERS(lane, T, U)                                                   \
  TW_MAP2(add, lane, T, T, static_cast<T>(static_cast<U>(a) + static_cast<U>(b))) \
  TW_MAP2(sub, lane, T, T, static_cast<T>(static_cast<U>(a) - static_cast<U>(b))) \
  TW_MAP2(mul, lane, T, T, static_cast<T>(static_cast<U>(a) * static_cast<U>(b))) \
  TW_MAP2(div, lane, T, T, floor_divide(a, b))                                    \
  TW_MAP2(mod, lane, T, T, modulo(a, b))                                          \
  TW_MAP2(ceildiv, lane, T, T, ceil_divide(a, b))                                 \
  TW_MAP2(min, lane, T, T, a < b ? a : b)                                         \
  TW_MAP2(max, lane, T, T, a > b ? a : b)                                         \
  TW_MAP1(neg, lane, T, T, static_cast<T>(0 - static_cast<U>(a)))                 \
  TW_MAP1(abs, lane, T, T, a < 0 ? static_cast<T>(0 - static_cast<U>(a)) : a)     \
  TW_MAP2(bit_and, lane, T, T, a& b)                                              \
  TW_MAP2(bit_or, lane, T, T, a | b)                                              \
  TW_MAP2(bit_xor, lane, T, T, a ^ b)                                             \
  TW_MAP1(bit_not, lane, T, T, ~a)                                                \
  TW_MAP2(shift_left, lane, T, T, shifted_left(a, b))                             \
  TW_MAP2(shift_right, lane, T, T, shifted_right(a, b))                           \
  TW_COMPARISONS(lane, T)
TW_COMPARISONS(f32, float)
TW_INTEGERS(i32, std::int32_t, std::uint32_t)
TW_INTEGERS(i64, std::int64_t, std::uint64_t)
TW_COMPARISONS(boolean, std::uint8_t)
TW_MAP2(logical_and, boolean, std::uint8_t, std::uint8_t, a& b)
TW_MAP2(logical_or, boolean, std::uint8_t, std::uint8_t, a | b)
TW_MAP1(logical_not, boolean, std::uint8_t, std::uint8_t, a ^ 1)
#undef TW_MAP1
#undef TW_MAP2
#undef TW_COMPARISONS
#undef TW_INTEGERS

// Of elements of any kind, by their size. What a mask hides is mostly a scalar: it is written out
// once, where a row is one chunk.
template <typename T>
void select(Shape shape, const Operand& condition, const Operand& yes, const Operand& no,
            Result result) {
  alignas(64) T hidden[kChunk];
  const bool is_scalar = no.repeats && no.row_stride == 0 && shape.columns <= kChunk;
  if (is_scalar) repeat(*row_of<T>(no, 0), hidden, blocks(shape.columns) * kBlock);
  const Operand other = is_scalar ? Operand{hidden, 0, false} : no;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Row<std::uint8_t> asked(condition, row, shape.columns);
    const Row<T> a(yes, row, shape.columns), b(other, row, shape.columns);
    T* const to = row_of<T>(result, row);
    for_chunks(shape.columns, [&](std::int64_t column, std::int64_t count) {
      const std::uint8_t* const c = asked.chunk(column);
      const T *const p = a.chunk(column), *const q = b.chunk(column);
      T* const r = to + column;
      TW_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) {
        const T chosen = p[i], other = q[i];
        r[i] = c[i] ? chosen : other;
      }
    });
  }
}

template <typename T>
void fill(Shape shape, const void* value, Result result) {
  const T number = *static_cast<const T*>(value);
  const std::int64_t end = blocks(shape.columns) * kBlock;
  for (std::int64_t row = 0; row < shape.rows; ++row) repeat(number, row_of<T>(result, row), end);
}

void iota_columns(Shape shape, Result result) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    std::int32_t* const to = row_of<std::int32_t>(result, row);
    for (std::int64_t i = 0; i < shape.columns; ++i) to[i] = static_cast<std::int32_t>(i);
  }
}

void iota_rows(Shape shape, Result result) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const auto number = static_cast<std::int32_t>(row);
    fill<std::int32_t>({1, shape.columns}, &number, {row_of<std::int32_t>(result, row), 0});
  }
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
