#pragma once

#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/transpose.h"

// Reductions. Sums of floats are added in ascending order, as the interpreter adds them.
namespace tilewright::cpu::TW_LEVEL {
namespace {

struct Add {
  static constexpr float kOfNothing = 0;
  static constexpr float kNeutral = -0.0f;  // 0 would change the sign of a zero
  TW_INLINE static Floats combine(Floats a, Floats b) { return a + b; }
  TW_INLINE static float combine(float a, float b) { return a + b; }
};
struct Min {
  static constexpr float kOfNothing = __builtin_inff();
  static constexpr float kNeutral = __builtin_inff();
  TW_INLINE static Floats combine(Floats a, Floats b) { return less_or(b, a); }
  TW_INLINE static float combine(float a, float b) { return b < a ? b : a; }
  TW_INLINE static float exact(float a, float b) { return smaller(a, b); }
};
struct Max {
  static constexpr float kOfNothing = -__builtin_inff();
  static constexpr float kNeutral = -__builtin_inff();
  // A NaN in b is left out, and a is none.
  TW_INLINE static Floats combine(Floats a, Floats b) { return greater_or(b, a); }
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

template <typename F>
TW_INLINE Block combine_blocks(const Block& a, const Block& b) {
  Block result;
  for (int i = 0; i < kVectors; ++i) result.part[i] = F::combine(a.part[i], b.part[i]);
  return result;
}

// What is combined along a row: its elements, or their products with those of another one.
struct ElementsOfRow {
  const float* row;
  TW_INLINE Block at(std::int64_t column) const { return load_block(row + column); }
};
struct ProductsOfRows {
  const float *a, *b;
  TW_INLINE Block at(std::int64_t column) const {
    Block result = load_block(a + column);
    const Block factor = load_block(b + column);
    for (int i = 0; i < kVectors; ++i) result.part[i] = result.part[i] * factor.part[i];
    return result;
  }
};

struct SquaresOfRow {
  const float* row;
  TW_INLINE Block at(std::int64_t column) const {
    Block result = load_block(row + column);
    for (int i = 0; i < kVectors; ++i) result.part[i] = result.part[i] * result.part[i];
    return result;
  }
};

// What comes behind the last whole round of a row.
template <typename Row>
TW_INLINE Row rest_of(const Row& row, std::int64_t, std::int64_t) {
  return row;
}

// A row in as many parts as a block has elements: of blocks 0, 4, 8 and so on, of 1, 5, 9 and so
// on, and these four blocks together. So four additions are under way at once.
template <typename F, typename Row>
TW_INLINE Block parts_of_row(Row row, std::int64_t columns, Asking& asking) {
  Block parts[4];
  for (Block& each : parts) {
    for (int i = 0; i < kVectors; ++i) each.part[i] = splat(F::kNeutral);
  }
  std::int64_t at = 0;
  for (; at + 4 * kBlock <= columns; at += 4 * kBlock) {
    for (int i = 0; i < kVectors; ++i) asking.next();
    unrolled<4>([&](auto i) {
      Block& part = parts[i.value];
      part = combine_blocks<F>(part, row.at(at + i.value * kBlock));
    });
  }
  if (at < columns) {
    const auto rest = rest_of(row, at, columns);
    unrolled<4>([&](auto i) {
      const std::int64_t first = at + i.value * kBlock, left = columns - first;
      if (left <= 0) return;
      Block next = rest.at(first);
      if (left < kBlock) next = only_first(next, left, F::kNeutral);
      parts[i.value] = combine_blocks<F>(parts[i.value], next);
    });
  }
  return combine_blocks<F>(combine_blocks<F>(parts[0], parts[1]),
                           combine_blocks<F>(parts[2], parts[3]));
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

// The same of kLanes rows at once, whose results become the lanes of one vector. First the rows'
// parts 0, 8, 4 and 12, 1, 9, 5 and 13 and so on: the four sums of a row stay side by side.
template <typename F>
TW_INLINE Floats four_sums(const Block (&rows)[kLanes / 4]) {
#if defined(__AVX512F__)
  const auto halved = [](Floats a, Floats b) {
    return F::combine((Floats)_mm512_shuffle_f32x4(a, b, 0x44),
                      (Floats)_mm512_shuffle_f32x4(a, b, 0xee));
  };
  const Floats first = halved(rows[0].part[0], rows[1].part[0]);
  const Floats second = halved(rows[2].part[0], rows[3].part[0]);
  return F::combine((Floats)_mm512_shuffle_f32x4(first, second, 0x88),
                    (Floats)_mm512_shuffle_f32x4(first, second, 0xdd));
#elif defined(__AVX2__)
  const Floats first = F::combine(rows[0].part[0], rows[0].part[1]);
  const Floats second = F::combine(rows[1].part[0], rows[1].part[1]);
  return F::combine((Floats)_mm256_permute2f128_ps(first, second, 0x20),
                    (Floats)_mm256_permute2f128_ps(first, second, 0x31));
#else
  return F::combine(F::combine(rows[0].part[0], rows[0].part[2]),
                    F::combine(rows[0].part[1], rows[0].part[3]));
#endif
}
template <typename F, typename RowAt>
TW_INLINE Floats trees_of_rows(std::int64_t columns, Asking& asking, RowAt row_at) {
  Floats sums[4];  // of every fourth row
  for (int i = 0; i < 4; ++i) {
    Block parts[kLanes / 4];
    for (int j = 0; j < kLanes / 4; ++j) {
      parts[j] = parts_of_row<F>(row_at(4 * j + i), columns, asking);
    }
    sums[i] = four_sums<F>(parts);
  }
  const Floats first = F::combine(low_halves(sums[0], sums[1]), high_halves(sums[0], sums[1]));
  const Floats second = F::combine(low_halves(sums[2], sums[3]), high_halves(sums[2], sums[3]));
  return F::combine(even_lanes(first, second), odd_lanes(first, second));
}

// What some rows come to, which is written as whole vectors. Who reads a vector of which a single
// element was written has to wait until all stores before have reached the cache.
class ResultsOfRows {
 public:
  TW_INLINE explicit ResultsOfRows(float* to) : to_(to) {}
  TW_INLINE void add(float result) {
    results_ = choose(lane_numbers() == count_, splat(result), results_);
    if (++count_ == kLanes) end();
  }
  TW_INLINE void end() {
    if (count_ > 0) store(to_, results_);
    to_ += count_;
    count_ = 0;
  }

 private:
  float* to_;
  Floats results_ = {};
  std::int32_t count_ = 0;
};

// Writes what each of the rows row_at(i) comes to: of kLanes rows at once, and of those left.
template <typename F, typename RowAt>
TW_INLINE void combine_rows(Shape shape, float* to, RowAt row_at) {
  Asking asking(shape.ahead);
  std::int64_t row = 0;
  for (; row + kLanes <= shape.rows; row += kLanes) {
    store(to + row,
          trees_of_rows<F>(shape.columns, asking, [&](int i) { return row_at(row + i); }));
  }
  ResultsOfRows results(to + row);
  for (; row < shape.rows; ++row) {
    results.add(tree<F>(parts_of_row<F>(row_at(row), shape.columns, asking)));
  }
  results.end();
}
template <typename F>
TW_INLINE void combine_rows(Shape shape, const Operand& source, float* to) {
  combine_rows<F>(shape, to,
                  [&](std::int64_t row) { return ElementsOfRow{row_of<float>(source, row)}; });
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

void sum_row_floats(Shape shape, const Operand& source, void* result) {
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

// Of each row by itself.
template <typename F>
TW_INLINE void for_rows(Shape shape, const Operand& source, float* to, F f) {
  for (std::int64_t row = 0; row < shape.rows; ++row) to[row] = f(row_of<float>(source, row));
}

// In parts of which all instruction sets have as many, in one order.
void sum_row_floats_in_parts(Shape shape, const Operand& source, void* result) {
  if (shape.columns == 0 || source.repeats) return sum_row_floats(shape, source, result);
  combine_rows<Add>(shape, source, static_cast<float*>(result));
}

void sum_products_in_parts(Shape shape, const Operand& a, const Operand& b, void* result) {
  float* const to = static_cast<float*>(result);
  if (shape.columns == 0) return for_rows(shape, a, to, [](auto*) { return 0.0f; });
  if (a.data == b.data && a.row_stride == b.row_stride) {
    return combine_rows<Add>(shape, to,
                             [&](std::int64_t row) { return SquaresOfRow{row_of<float>(a, row)}; });
  }
  combine_rows<Add>(shape, to, [&](std::int64_t row) {
    return ProductsOfRows{row_of<float>(a, row), row_of<float>(b, row)};
  });
}

template <typename F>
void reduce_row_floats(Shape shape, const Operand& source, void* result) {
  float* const to = static_cast<float*>(result);
  if (shape.columns == 0) return for_rows(shape, source, to, [](auto*) { return F::kOfNothing; });
  if (source.repeats) return for_rows(shape, source, to, [](const float* row) { return *row; });
  combine_rows<F>(shape, source, to);
  // Which zero it is, and whether all were NaN, depends on the order. Rows that a mask hides begin
  // with what they come to.
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    if (to[row] != 0 && to[row] != F::kNeutral) continue;
    const float* const from = row_of<float>(source, row);
    if (to[row] == F::kNeutral && *from == F::kNeutral) continue;
    to[row] = ascending(from, shape.columns, 1, [](float a, float b) { return F::exact(a, b); });
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
void reduce_column_floats(Shape shape, const Operand& source, void* result) {
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
void reduce_row_integers(Shape shape, const Operand& source, void* result) {
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
void reduce_column_integers(Shape shape, const Operand& source, void* result) {
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

bool any(Shape shape, const Operand& source) {
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
