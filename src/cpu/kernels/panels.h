#pragma once

#include "cpu/kernels/copy.h"
#include "cpu/kernels/transpose.h"

// What products have in common, whatever the elements: panels of kPanel columns of b, one term of k
// behind the other, and blocks of sums that stay in registers.
namespace tilewright::cpu::TW_LEVEL {
namespace {

TW_INLINE std::int64_t rounded_up(std::int64_t count, std::int64_t step) {
  return (count + step - 1) / step * step;
}

// As many sums as keep the vector registers busy: 32 of them, or 16.
#if defined(__AVX512F__)
constexpr int kSumRows = 4, kSumVectors = 4;
#else
constexpr int kSumRows = 4, kSumVectors = 2;
#endif
constexpr std::int64_t kPanel = kSumVectors * kLanes;
// So many terms of so many columns are packed at once, and stay in the second-level cache. They
// meet so many rows of a, which stay in the first.
constexpr std::int64_t kTerms = 256, kColumns = 256, kRows = 32;

// Floats one after the other, `stride` of them to the next row.
struct FloatRows {
  float* data;
  std::int64_t stride;
};

// Calls visit(first, Count<n>) for parts of `count`, the largest first: 4 at a time, 2, 1.
template <int n>
struct Count {
  static constexpr int value = n;
};
template <int largest, typename Visit>
TW_INLINE void in_parts(std::int64_t count, Visit visit) {
  std::int64_t first = 0;
  for (; first + largest <= count; first += largest) visit(first, Count<largest>{});
  if constexpr (largest > 1) {
    in_parts<largest / 2>(count - first,
                          [&](std::int64_t at, auto part) { visit(first + at, part); });
  }
}

TW_INLINE std::int64_t smaller_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// A part of a product that is packed at once.
struct PackedPart {
  std::int64_t first_term, terms, first_column, columns;
};

// Calls pack(part) for each part, in ascending order of terms, and then for all blocks of sums that
// fit into registers multiply(part, row, column, Count rows, Count vectors), columns counted from
// that of the part.
template <typename Pack, typename Multiply>
TW_INLINE void for_parts(const Product& p, Pack pack, Multiply multiply) {
  PackedPart part;
  for (part.first_term = 0; part.first_term < p.k; part.first_term += kTerms) {
    part.terms = smaller_of(p.k - part.first_term, kTerms);
    for (part.first_column = 0; part.first_column < p.n; part.first_column += kColumns) {
      part.columns = smaller_of(p.n - part.first_column, kColumns);
      pack(part);
      for (std::int64_t top = 0; top < p.m; top += kRows) {
        for (std::int64_t left = 0; left < part.columns; left += kPanel) {
          const std::int64_t columns = smaller_of(part.columns - left, kPanel);
          in_parts<kSumRows>(smaller_of(p.m - top, kRows), [&](std::int64_t row, auto rows) {
            in_parts<kSumVectors>(
                (columns + kLanes - 1) / kLanes, [&](std::int64_t vector, auto vectors) {
                  multiply(part, top + row, left + vector * kLanes, rows, vectors);
                });
          });
        }
      }
    }
  }
}

// Where a column of a part is packed: panel behind panel, each of the part's terms.
TW_INLINE float* packed_column(float* panels, std::int64_t rows_of_panel, std::int64_t column) {
  return panels + column / kPanel * rows_of_panel * kPanel + column % kPanel;
}

// `columns` of b, at most kPanel, whose terms lie side by side. `packed` {k, kPanel}.
TW_INLINE void pack_transposed(std::int64_t k, std::int64_t columns, const float* b,
                               std::int64_t stride, float* packed) {
  std::int64_t column = 0;
  for (; column + kLanes <= columns; column += kLanes) {
    const float* const from = b + column * stride;
    std::int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
      Floats terms[4];
      transpose_four(from + i, stride, terms);
      for (int j = 0; j < 4; ++j) store(packed + (i + j) * kPanel + column, terms[j]);
    }
    for (; i < k; ++i) {
      for (int j = 0; j < kLanes; ++j) packed[i * kPanel + column + j] = from[j * stride + i];
    }
  }
  for (; column < columns; ++column) {
    for (std::int64_t i = 0; i < k; ++i) packed[i * kPanel + column] = b[column * stride + i];
  }
}

// The vectors that columns of a panel are in get zeros where there are none.
TW_INLINE void clear_rest(std::int64_t k, std::int64_t columns, float* packed) {
  const std::int64_t end = (columns + kLanes - 1) / kLanes * kLanes;
  if (end == columns) return;
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = columns; j < end; ++j) packed[i * kPanel + j] = 0;
  }
}

TW_INLINE void clear(const Product& p) {
  for (std::int64_t row = 0; row < p.m; ++row) {
    __builtin_memset(static_cast<char*>(p.c.data) + row * p.c.row_stride, 0,
                     static_cast<std::size_t>(rounded_up(p.n, kBlock)) * sizeof(float));
  }
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
