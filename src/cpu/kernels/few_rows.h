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
constexpr std::int64_t kColumnsAhead = 32;  // which lie so, too
constexpr int kIntoSecondLevel = 2;

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

// Asks for the lines of memory of columns one after the other, some at a time: into the
// second-level cache, since all of them may be one set of the first.
class ColumnsAhead {
 public:
  TW_INLINE ColumnsAhead(const Columns& columns, std::int64_t terms)
      : columns_(columns), terms_(terms) {}
  TW_INLINE void ask(std::int64_t lines) {
    for (; lines > 0 && column_ < columns_.count; --lines) {
      __builtin_prefetch(columns_.at(column_, term_), 0, kIntoSecondLevel);
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

// c {rows, kLanes} += a b, of columns that have been copied, while others are fetched.
template <int rows, typename Add>
TW_INLINE void add_columns(std::int64_t k, FloatRows a, const Columns& b, ColumnsAhead& ahead,
                           FloatRows c, bool from_zero, Add add) {
  Sums<rows, 1> sums;
  sums.start(c, from_zero);
  const auto add_term = [&](std::int64_t i, Floats term) {
    unrolled<rows>([&](auto r) {
      sums.at[r.value][0] = add(a.data + r.value * a.stride + i, term, sums.at[r.value][0]);
    });
  };
  std::int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    ahead.ask(kLanes * 4 / kBlock);  // as many lines as these have
    Floats terms[4];
    transpose_four(b.at(0, i), b.stride, terms);
    unrolled<4>([&](auto j) { add_term(i + j.value, terms[j.value]); });
  }
  for (; i < k; ++i) {
    Floats term;
    for (int j = 0; j < kLanes; ++j) term[j] = *b.at(j, i);
    add_term(i, term);
  }
  sums.end(c);
}

TW_INLINE void copy_words(const float* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  __builtin_memcpy(to + i, from + i, static_cast<std::size_t>(count - i) * sizeof(float));
}

// Where the columns of b {k, n} have their words side by side. They are copied, as many at once as
// a vector has lanes: tensors set them so far apart that the first-level cache would hold few.
template <typename Add>
TW_INLINE void multiply_columns(const Product& p, std::int64_t k, FloatRows a, const float* b,
                                std::int64_t stride, float* buffer, Add add) {
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  for (std::int64_t first = 0; first < k; first += kTerms) {
    const std::int64_t terms = smaller_of(k - first, kTerms);
    const Columns copied = {buffer, buffer_stride(terms), kLanes};
    const auto columns = [&](std::int64_t from) {
      return Columns{b + from * stride + first, stride, smaller_of(p.n - from, kLanes)};
    };
    for (std::int64_t column = 0; column < p.n; column += kLanes) {
      const Columns now = columns(column);
      for (std::int64_t j = 0; j < now.count; ++j) {
        copy_words(now.at(j, 0), buffer + j * copied.stride, terms);
      }
      ColumnsAhead ahead(columns(column + kColumnsAhead), terms);
      in_parts<kFewRows>(p.m, [&](std::int64_t row, auto rows) {
        add_columns<decltype(rows)::value>(
            terms, {a.data + row * a.stride + first, a.stride}, copied, ahead,
            {c.data + row * c.stride + column, c.stride}, !p.accumulates && first == 0, add);
      });
    }
  }
}

// c {rows, vectors} += a b.
template <int rows, int vectors, typename LoadRow, typename Add>
TW_INLINE void add_rows(std::int64_t k, FloatRows a, FloatRows c, bool from_zero, LoadRow load_row,
                        Add add) {
  Sums<rows, vectors> sums;
  sums.start(c, from_zero);
  for (std::int64_t i = 0; i < k; ++i) {
    unrolled<vectors>([&](auto v) {
      const Floats b = load_row(i, v.value * kLanes);
      unrolled<rows>([&](auto r) {
        Floats& sum = sums.at[r.value][v.value];
        sum = add(a.data + r.value * a.stride + i, b, sum);
      });
    });
  }
  sums.end(c);
}

// Of whole vectors of columns. `load_row(i, column)` gives the words of row i of b {k, n}.
template <typename LoadRow, typename Add>
TW_INLINE void multiply_rows(const Product& p, std::int64_t k, FloatRows a, LoadRow load_row,
                             Add add) {
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  in_parts<kFewRows>(p.m, [&](std::int64_t row, auto rows) {
    constexpr int kRows = decltype(rows)::value;
    in_parts<kSumRows * kSumVectors / (kRows < 2 ? 2 : kRows)>(
        p.n / kLanes, [&](std::int64_t vector, auto vectors) {
          const std::int64_t column = vector * kLanes;
          add_rows<kRows, decltype(vectors)::value>(
              k, {a.data + row * a.stride, a.stride}, {c.data + row * c.stride + column, c.stride},
              !p.accumulates,
              [&](std::int64_t i, std::int64_t next) { return load_row(i, column + next); }, add);
        });
  });
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
