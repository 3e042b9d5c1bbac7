#pragma once

#include "cpu/kernels/panels.h"

// Products of few rows, such as the one query of a step that decodes. Packing b would take longer
// than they do, so b is read where it lies, each line of memory once. Sums have the order, and so
// the bits, that they have of many rows. Elements here are words of 4 bytes: floats, or pairs of
// narrower ones along k. `add(factor, b, sum)` adds the product of a word of a and those of b.
namespace tilewright::cpu::TW_LEVEL {
namespace {

// Rows of b that memory is asked for ahead of their use: those of tensors lie pages apart, where
// the machine foresees nothing. Only some fit the first-level cache, where rows that a multiple of
// 4 KB sets apart are one set; the second-level cache holds as many as memory takes to answer.
constexpr std::int64_t kRowsAhead = 4, kRowsFarAhead = 16;
constexpr int kIntoSecondLevel = 2, kIntoFirstLevel = 3;
// Of a row one line in so many is asked for. With AVX2 the machine finds those behind it, and a
// core that asks for all waits for its own requests.
constexpr std::int64_t kLinesForOne = TW_VECTOR_BYTES == 32 ? 4 : 1;

// Columns whose words lie side by side are taken some vectors at once. With AVX2 a sum that waits
// for the one before would take longer than memory, so there are two vectors. Columns that are few
// sets of the first-level cache are copied, some terms at once, since they are few sets of the
// second-level cache too.
#if TW_VECTOR_BYTES == 32
constexpr int kColumnVectors = 2, kColumnsInto = kIntoFirstLevel;
constexpr std::int64_t kColumnsAhead = 16, kCopiedTerms = 64;
#else
constexpr int kColumnVectors = 1, kColumnsInto = kIntoSecondLevel;
constexpr std::int64_t kColumnsAhead = 32, kCopiedTerms = kTerms;
#endif
constexpr std::int64_t kColumnsAtOnce = kColumnVectors * kLanes;

// Before row i of k is used. `at(i)` is where its words begin.
template <typename At>
TW_INLINE void prefetch_rows(std::int64_t i, std::int64_t k, At at) {
  if (i + kRowsAhead < k) __builtin_prefetch(at(i + kRowsAhead));
  if (i + kRowsFarAhead < k) __builtin_prefetch(at(i + kRowsFarAhead), 0, kIntoSecondLevel);
}

// Columns whose words lie side by side.
struct Columns {
  const float* data;
  std::int64_t stride, count;
  TW_INLINE const float* at(std::int64_t column, std::int64_t term) const {
    return data + column * stride + term;
  }
};

// Asks for the lines of memory of columns one after the other, some at a time.
class ColumnsAhead {
 public:
  TW_INLINE ColumnsAhead(const Columns& columns, std::int64_t terms)
      : columns_(columns), terms_(terms) {}
  TW_INLINE void ask(std::int64_t lines) {
    for (; lines > 0 && column_ < columns_.count; --lines) {
      __builtin_prefetch(columns_.at(column_, term_), 0, kColumnsInto);
      term_ += kBlock;
      if (term_ < terms_) continue;
      term_ = 0;
      ++column_;
    }
  }

 private:
  const Columns columns_;
  const std::int64_t terms_;
  std::int64_t column_ = 0, term_ = 0;
};

// Of a vector of columns. Apart from the loop, since the number of terms is mostly a multiple of 4.
TW_APART Floats one_term(const float* from, std::int64_t stride) {
  Floats term;
  for (int i = 0; i < kLanes; ++i) term[i] = from[i * stride];
  return term;
}

// c {rows, kColumnsAtOnce} += a b, while other columns are fetched.
template <int rows, typename Add>
TW_INLINE void add_columns(std::int64_t k, FloatRows a, const Columns& b, ColumnsAhead& ahead,
                           FloatRows c, bool from_zero, Add add) {
  Sums<rows, kColumnVectors> sums;
  sums.start(c, from_zero);
  const auto add_term = [&](std::int64_t i, int vector, Floats term) {
    unrolled<rows>([&](auto r) {
      Floats& sum = sums.at[r.value][vector];
      sum = add(a.data + r.value * a.stride + i, term, sum);
    });
  };
  std::int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    ahead.ask(kColumnsAtOnce * 4 / kBlock);  // as many lines as these have
    unrolled<kColumnVectors>([&](auto v) {
      Floats terms[4];
      transpose_four(b.at(v.value * kLanes, i), b.stride, terms);
      unrolled<4>([&](auto j) { add_term(i + j.value, v.value, terms[j.value]); });
    });
  }
  for (; i < k; ++i) {
    unrolled<kColumnVectors>(
        [&](auto v) { add_term(i, v.value, one_term(b.at(v.value * kLanes, i), b.stride)); });
  }
  sums.end(c);
}

TW_INLINE void copy_words(const float* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  __builtin_memcpy(to + i, from + i, static_cast<std::size_t>(count - i) * sizeof(float));
}

// Where the columns of b {k, n} have their words side by side.
template <typename Add>
TW_INLINE void multiply_columns(const Product& p, std::int64_t k, FloatRows a, const float* b,
                                std::int64_t stride, float* buffer, Add add) {
  constexpr std::int64_t kFewSets = 512;  // words, a multiple of which sets columns apart
  const bool can_stay = kColumnVectors > 1 && stride % kFewSets != 0;
  const std::int64_t at_once = can_stay ? kTerms : kCopiedTerms;
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  for (std::int64_t first = 0; first < k; first += at_once) {
    const std::int64_t terms = smaller_of(k - first, at_once);
    const auto columns = [&](std::int64_t from) {
      return Columns{b + from * stride + first, stride, smaller_of(p.n - from, kColumnsAtOnce)};
    };
    for (std::int64_t column = 0; column < p.n; column += kColumnsAtOnce) {
      Columns now = columns(column);
      if (!can_stay || now.count < kColumnsAtOnce) {
        const Columns copied = {buffer, buffer_stride(terms), kColumnsAtOnce};
        for (std::int64_t j = 0; j < now.count; ++j) {
          copy_words(now.at(j, 0), buffer + j * copied.stride, terms);
        }
        now = copied;
      }
      ColumnsAhead ahead(columns(column + kColumnsAhead), terms);
      in_parts<kFewRows>(p.m, [&](std::int64_t row, auto rows) {
        add_columns<decltype(rows)::value>(terms, {a.data + row * a.stride + first, a.stride}, now,
                                           ahead, {c.data + row * c.stride + column, c.stride},
                                           !p.accumulates && first == 0, add);
      });
    }
  }
}

// Vectors of b's rows that one row of a meets at once, where there are registers for its sums.
constexpr int kVectorsOfOneRow = TW_VECTOR_BYTES == 16 ? 4 : 8;

// c {rows, vectors} += a b, whose words in a row of b are those of `rows_of_b` from `column` on.
template <int rows, int vectors, typename RowsOfB, typename Add>
TW_INLINE void add_rows(std::int64_t k, FloatRows a, RowsOfB rows_of_b, std::int64_t column,
                        FloatRows c, bool from_zero, Add add) {
  Sums<rows, vectors> sums;
  sums.start(c, from_zero);
  for (std::int64_t i = 0; i < k; ++i) {
    unrolled<vectors>([&](auto v) {
      const std::int64_t at = column + v.value * kLanes;
      if (v.value * kLanes % (kLinesForOne * kBlock) == 0) rows_of_b.ask_ahead_of(i, at);
      const Floats b = rows_of_b.load(i, at);
      unrolled<rows>([&](auto r) {
        Floats& sum = sums.at[r.value][v.value];
        sum = add(a.data + r.value * a.stride + i, b, sum);
      });
    });
  }
  sums.end(c);
}

// Of whole vectors of columns. b {k, n} loads the words of its row i, and asks for those of others
// before it is used.
template <typename RowsOfB, typename Add>
TW_INLINE void multiply_rows(const Product& p, std::int64_t k, FloatRows a, RowsOfB b, Add add) {
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  in_parts<kFewRows>(p.m, [&](std::int64_t row, auto rows) {
    constexpr int kRows = decltype(rows)::value;
    in_parts<kRows == 1 ? kVectorsOfOneRow : kSumRows * kSumVectors / kRows>(
        p.n / kLanes, [&](std::int64_t vector, auto vectors) {
          const std::int64_t column = vector * kLanes;
          add_rows<kRows, decltype(vectors)::value>(
              k, {a.data + row * a.stride, a.stride}, b, column,
              {c.data + row * c.stride + column, c.stride}, !p.accumulates, add);
        });
  });
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
