#pragma once

#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/transpose.h"

// Reductions. Sums of floats are added in ascending order, as the interpreter adds them.
namespace tilewright::cpu::TW_LEVEL {
namespace {

struct Add {
  static constexpr float kOfNothing = 0;
};
struct Min {
  static constexpr float kOfNothing = __builtin_inff();
  static constexpr float kNeutral = __builtin_inff();
  TW_INLINE static Floats combine(Floats a, Floats b) { return b < a ? b : a; }
  TW_INLINE static float combine(float a, float b) { return b < a ? b : a; }
  TW_INLINE static float exact(float a, float b) { return smaller(a, b); }
};
struct Max {
  static constexpr float kOfNothing = -__builtin_inff();
  static constexpr float kNeutral = -__builtin_inff();
  // A NaN in b is left out, and a is none.
  TW_INLINE static Floats combine(Floats a, Floats b) { return b > a ? b : a; }
  TW_INLINE static float combine(float a, float b) { return b > a ? b : a; }
  TW_INLINE static float exact(float a, float b) { return larger(a, b); }
};

// The elements of a block, and then so many of them at its front.
struct Block {
  Floats part[kVectors];
};
TW_INLINE Block load_block(const float* p) {
  Block result;
  for (int i = 0; i < kVectors; ++i) result.part[i] = load(p + i * kLanes);
  return result;
}
TW_INLINE Block only_first(Block block, std::int64_t count, float others) {
  for (int i = 0; i < kVectors; ++i) {
    const Ints exists = lane_numbers() + i * kLanes < static_cast<std::int32_t>(count);
    block.part[i] = choose(exists, block.part[i], splat(others));
  }
  return block;
}

// (0 + 8) + (4 + 12), ... and then the four of them: (0 + 2) + (1 + 3).
template <typename F>
TW_INLINE float tree(const Block& block) {
  alignas(TW_VECTOR_BYTES) float lanes[kBlock];
  for (int i = 0; i < kVectors; ++i) store(lanes + i * kLanes, block.part[i]);
  float sums[4];
  for (int i = 0; i < 4; ++i) {
    sums[i] =
        F::combine(F::combine(lanes[i], lanes[i + 8]), F::combine(lanes[i + 4], lanes[i + 12]));
  }
  return F::combine(F::combine(sums[0], sums[2]), F::combine(sums[1], sums[3]));
}

template <typename F>
TW_INLINE float along_row(const float* row, std::int64_t columns) {
  Block sums;
  for (int i = 0; i < kVectors; ++i) sums.part[i] = splat(F::kNeutral);
  const std::int64_t whole_blocks = columns / kBlock * kBlock;
  for (std::int64_t at = 0; at < whole_blocks; at += kBlock) {
    const Block next = load_block(row + at);
    for (int i = 0; i < kVectors; ++i) sums.part[i] = F::combine(sums.part[i], next.part[i]);
  }
  if (whole_blocks < columns) {
    const Block next =
        only_first(load_block(row + whole_blocks), columns - whole_blocks, F::kNeutral);
    for (int i = 0; i < kVectors; ++i) sums.part[i] = F::combine(sums.part[i], next.part[i]);
  }
  return tree<F>(sums);
}

// Of elements one after the other, as the interpreter takes them.
template <typename Combine>
TW_INLINE float ascending(const float* row, std::int64_t count, std::int64_t step,
                          Combine combine) {
  float result = row[0];
  for (std::int64_t i = 1; i < count; ++i) result = combine(result, row[i * step]);
  return result;
}

TW_INLINE float add_ascending(const float* row, std::int64_t count, std::int64_t step) {
  return ascending(row, count, step, [](float a, float b) { return a + b; });
}

// Of kLanes rows at once, each lane has one.
TW_INLINE Floats add_rows_ascending(const float* rows, std::int64_t stride, std::int64_t columns) {
  Floats sums = splat(-0.0f);  // changes nothing, not even the sign of a zero
  for (std::int64_t column = 0; column < columns; column += 4) {
    Floats next[4];
    transpose_four(rows + column, stride, next);
    for (int i = 0; i < 4 && column + i < columns; ++i) sums += next[i];
  }
  return sums;
}

void sum_row_floats(Shape shape, Operand source, void* result) {
  float* const to = static_cast<float*>(result);
  const std::int64_t stride = source.row_stride / 4, columns = shape.columns;
  std::int64_t row = 0;
  if (columns > 0 && !source.repeats) {
    for (; row + kLanes <= shape.rows; row += kLanes) {
      store(to + row, add_rows_ascending(row_of<float>(source, row), stride, columns));
    }
  }
  for (; row < shape.rows; ++row) {
    to[row] = columns == 0
                  ? 0.0f
                  : add_ascending(row_of<float>(source, row), columns, source.repeats ? 0 : 1);
  }
}

template <typename F>
void reduce_row_floats(Shape shape, Operand source, void* result) {
  float* const to = static_cast<float*>(result);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float* const from = row_of<float>(source, row);
    if (shape.columns == 0) {
      to[row] = F::kOfNothing;
    } else {
      const float found = source.repeats ? *from : along_row<F>(from, shape.columns);
      // Which zero it is, and whether all were NaN, depends on the order.
      const bool is_plain = found != 0 && found != F::kNeutral;
      to[row] =
          is_plain || source.repeats
              ? found
              : ascending(from, shape.columns, 1, [](float a, float b) { return F::exact(a, b); });
    }
  }
}

TW_INLINE Floats in_column(Add, Floats a, Floats b) { return a + b; }
TW_INLINE Floats in_column(Min, Floats a, Floats b) { return smaller(a, b); }
TW_INLINE Floats in_column(Max, Floats a, Floats b) { return larger(a, b); }

// `vectors` of columns at once, from the top down.
template <typename F, int vectors>
TW_INLINE void column_strip(std::int64_t rows, const Operand& source, std::int64_t column,
                            float* to) {
  Floats sums[vectors];
  const std::int64_t step = source.repeats ? 0 : 1;
  const auto at = [&](std::int64_t row, int i) {
    const float* const p = row_of<float>(source, row);
    return source.repeats ? splat(*p) : load(p + column * step + i * kLanes);
  };
  for (int i = 0; i < vectors; ++i) sums[i] = at(0, i);
  for (std::int64_t row = 1; row < rows; ++row) {
    for (int i = 0; i < vectors; ++i) sums[i] = in_column(F{}, sums[i], at(row, i));
  }
  for (int i = 0; i < vectors; ++i) store(to + column + i * kLanes, sums[i]);
}

template <typename F>
void reduce_column_floats(Shape shape, Operand source, void* result) {
  float* const to = static_cast<float*>(result);
  const std::int64_t end = blocks(shape.columns) * kBlock;
  if (shape.rows == 0) {
    for (std::int64_t i = 0; i < end; ++i) to[i] = F::kOfNothing;
    return;
  }
  std::int64_t column = 0;
  for (; column + 4 * kLanes <= end; column += 4 * kLanes) {
    column_strip<F, 4>(shape.rows, source, column, to);
  }
  for (; column < end; column += kLanes) column_strip<F, 1>(shape.rows, source, column, to);
}

template <typename T, Reduction function>
TW_INLINE T combine_integers(T a, T b) {
  using Unsigned = typename Integers<T>::Unsigned;
  if constexpr (function == Reduction::add) {
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else if constexpr (function == Reduction::min) {
    return a < b ? a : b;
  } else {
    return a > b ? a : b;
  }
}

template <typename T, Reduction function>
constexpr T integer_of_nothing() {
  const T highest = static_cast<T>(sizeof(T) == 4 ? INT32_MAX : INT64_MAX);
  if constexpr (function == Reduction::add)
    return 0;
  else if constexpr (function == Reduction::min)
    return highest;
  else
    return -highest - 1;
}

template <typename T, Reduction function>
void reduce_row_integers(Shape shape, Operand source, void* result) {
  const std::int64_t step = source.repeats ? 0 : 1;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const T* const from = row_of<T>(source, row);
    T sum = integer_of_nothing<T, function>();
    for (std::int64_t i = 0; i < shape.columns; ++i) {
      sum = combine_integers<T, function>(sum, from[i * step]);
    }
    static_cast<T*>(result)[row] = sum;
  }
}

template <typename T, Reduction function>
void reduce_column_integers(Shape shape, Operand source, void* result) {
  T* const to = static_cast<T*>(result);
  const std::int64_t end = blocks(shape.columns) * kBlock;
  for (std::int64_t i = 0; i < end; ++i) to[i] = integer_of_nothing<T, function>();
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Row<T> from(source, row, shape.columns);
    for_chunks(shape.columns, [&](std::int64_t column, std::int64_t count) {
      const T* const p = from.chunk(column);
      T* const r = to + column;
      TW_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) r[i] = combine_integers<T, function>(r[i], p[i]);
    });
  }
}

bool any(Shape shape, Operand source) {
  if (shape.columns == 0) return false;
  const std::int64_t columns = source.repeats ? 1 : shape.columns;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::uint8_t* const from = row_of<std::uint8_t>(source, row);
    std::uint8_t found = 0;
    for (std::int64_t i = 0; i < columns; ++i) found |= from[i];
    if (found) return true;
  }
  return false;
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
