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
// The same of a transposed a. So many rows of a term are lines of memory side by side, which the
// machine foresees.
constexpr std::int64_t kTransposedRows = 64;

// Floats one after the other, `stride` of them to the next row.
struct FloatRows {
  float* data;
  std::int64_t stride;
};

// Sums of {rows, vectors} in registers.
template <int rows, int vectors>
struct Sums {
  Floats at[rows][vectors];

  // The compiler knows nothing of it, or it would keep an address for each vector.
  TW_INLINE static float* row(FloatRows c, int r) {
    float* row = c.data + r * c.stride;
    asm("" : "+r"(row));
    return row;
  }
  template <typename Visit>
  TW_INLINE static void each(Visit visit) {
    unrolled<rows>([&](auto r) { unrolled<vectors>([&](auto v) { visit(r, v); }); });
  }
  // Those of c, or zeros.
  TW_INLINE void start(FloatRows c, bool from_zero) {
    if (from_zero) {
      each([&](auto r, auto v) { at[r.value][v.value] = Floats{}; });
    } else {
      each(
          [&](auto r, auto v) { at[r.value][v.value] = load(row(c, r.value) + v.value * kLanes); });
    }
  }
  TW_INLINE void end(FloatRows c) const {
    each([&](auto r, auto v) { store(row(c, r.value) + v.value * kLanes, at[r.value][v.value]); });
  }
};

// Calls visit(first, Count<n>) for parts of `count`, the largest first: 4 at a time, 2, 1.
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
TW_INLINE std::int64_t larger_of(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// A part of a product that is packed at once.
struct PackedPart {
  std::int64_t first_term, terms, first_column, columns;
  float* panels;
};

// [begin, end)
struct Span {
  std::int64_t begin, end;
};

// What of `count` elements lies outside of the span is looked at in blocks of kBlock, as long as
// is_zero(first) says that they are 0: the span grows to the others.
template <typename IsZero>
TW_INLINE Span widened(Span span, std::int64_t count, IsZero is_zero) {
  std::int64_t begin = 0, end = count;
  while (begin + kBlock <= span.begin && is_zero(begin)) begin += kBlock;
  while (end - kBlock >= span.end && is_zero(end - kBlock)) end -= kBlock;
  return {smaller_of(begin, span.begin), larger_of(end, span.end)};
}
// Outside of which so many rows have zeros alone. The last row goes first: under a causal mask it
// has the most.
template <typename IsZero>
TW_INLINE Span not_zero(std::int64_t rows, std::int64_t count, IsZero is_zero) {
  Span span = {count, 0};
  for (std::int64_t row = rows; row-- > 0 && (span.begin > 0 || span.end < count);) {
    span = widened(span, count, [&](std::int64_t first) { return is_zero(row, first); });
  }
  return span.end > span.begin ? span : Span{0, 0};
}

// Whether kBlock words are 0 in these bits: all but signs.
constexpr std::int32_t kOfFloat = 0x7fffffff, kOfPair = 0x7fff7fff;
TW_INLINE bool is_zero(const void* words, std::int32_t bits) {
  Ints found = {};
  for (int i = 0; i < kVectors; ++i) {
    found |= bits_of(load(static_cast<const float*>(words) + i * kLanes)) & bits;
  }
  return is_zero(found);
}

// The columns of a part that some of the rows need.
TW_INLINE Span needed_columns(const Product& p, const PackedPart& part, std::int64_t top,
                              std::int64_t rows) {
  if (!p.needed.data) return {0, part.columns};
  return not_zero(rows, part.columns, [&](std::int64_t row, std::int64_t first) {
    std::uint64_t booleans[2];
    static_assert(sizeof(booleans) == kBlock);
    __builtin_memcpy(booleans, element<char>(p.needed, top + row, part.first_column + first),
                     kBlock);
    return (booleans[0] | booleans[1]) == 0;
  });
}

// Calls pack(part) and multiply(part) for each part, in ascending order of terms, of which `in_row`
// are a row of a panel. Parts have equal lengths, nearly.
template <int in_row, typename Pack, typename Multiply>
TW_INLINE void for_packed_parts(const Product& p, float* panels, Pack pack, Multiply multiply) {
  const std::int64_t count = larger_of((p.k + kTerms - 1) / kTerms, 1);
  const std::int64_t most = rounded_up((p.k + count - 1) / count, 2 * kBlock);
  PackedPart part;
  part.panels = p.packs ? p.packs->at : panels;
  for (part.first_term = 0; part.first_term < p.k; part.first_term += most) {
    part.terms = smaller_of(p.k - part.first_term, most);
    for (part.first_column = 0; part.first_column < p.n; part.first_column += kColumns) {
      part.columns = smaller_of(p.n - part.first_column, kColumns);
      if (!p.packs || !p.packs->are_there) pack(part);
      multiply(part);
      if (p.packs) {
        part.panels += (part.terms + in_row - 1) / in_row * rounded_up(part.columns, kPanel);
      }
    }
  }
  if (p.packs) p.packs->at = part.panels;
}

// The same, where multiply(part, terms, row, column, Count rows, Count vectors) is called for all
// blocks of sums that fit into registers and are needed, columns counted from that of the part.
// `terms` are those that terms_of(part, row, rows) gives for `at_once` rows, where zeros are
// skipped.
template <std::int64_t at_once, typename Pack, typename TermsOf, typename Multiply>
TW_INLINE void for_parts(const Product& p, float* panels, Pack pack, TermsOf terms_of,
                         Multiply multiply) {
  for_packed_parts<1>(p, panels, pack, [&](const PackedPart& part) {
    for (std::int64_t top = 0; top < p.m; top += at_once) {
      const std::int64_t all_rows = smaller_of(p.m - top, at_once);
      const Span needed = needed_columns(p, part, top, all_rows);
      const Span terms = terms_of(part, top, all_rows);
      for (std::int64_t left = needed.begin / kPanel * kPanel; left < needed.end; left += kPanel) {
        const std::int64_t columns = smaller_of(needed.end - left, kPanel);
        in_parts<kSumRows>(all_rows, [&](std::int64_t row, auto rows) {
          in_parts<kSumVectors>(
              (columns + kLanes - 1) / kLanes, [&](std::int64_t vector, auto vectors) {
                multiply(part, terms, top + row, left + vector * kLanes, rows, vectors);
              });
        });
      }
      const bool is_whole = part.columns == p.n && part.first_term + part.terms == p.k;
      if (p.done != nullptr && is_whole) p.done->call(p.done->context, top + all_rows);
    }
  });
}

// Where a column of a part is packed: panel behind panel, each of the part's terms.
TW_INLINE float* packed_column(float* panels, std::int64_t rows_of_panel, std::int64_t column) {
  return panels + column / kPanel * rows_of_panel * kPanel + column % kPanel;
}

// `columns` of b, at most kPanel, whose terms lie side by side. `packed` {k, kPanel}.
TW_APART void pack_transposed(std::int64_t k, std::int64_t columns, const float* b,
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

// The same of columns wherever they lie. Those that a multiple of 1 KB sets apart fall into few
// sets of the first-level cache, so that they are first copied side by side, each line of memory
// once.
TW_INLINE std::int64_t buffer_stride(std::int64_t k) { return rounded_up(k, kBlock) + kBlock; }
TW_INLINE void pack_columns(std::int64_t k, std::int64_t columns, const float* b,
                            std::int64_t stride, float* packed, float* buffer) {
  if (stride % 256 != 0 || k < kBlock) return pack_transposed(k, columns, b, stride, packed);
  constexpr std::int64_t kAhead = 4;
  for (std::int64_t j = 0; j < columns; ++j) {
    const float* const from = b + j * stride;
    float* const to = buffer + j * buffer_stride(k);
    if (j + kAhead < columns) {
      for (std::int64_t i = 0; i < k; i += kBlock) __builtin_prefetch(from + kAhead * stride + i);
    }
    __builtin_memcpy(to, from, static_cast<std::size_t>(k) * sizeof(float));
  }
  pack_transposed(k, columns, buffer, buffer_stride(k), packed);
}

// {m, k} of elements of 4 bytes, whose columns `fill(term, row, count, to)` writes side by side, so
// many from a row on.
template <typename Fill>
TW_INLINE void fill_transposed(std::int64_t m, std::int64_t k, FloatRows target, Fill fill) {
  constexpr std::int64_t kRowsAtOnce = 64;
  alignas(TW_VECTOR_BYTES) float square[kBlock][kRowsAtOnce];
  for (std::int64_t row = 0; row < m; row += kRowsAtOnce) {
    const std::int64_t rows = smaller_of(m - row, kRowsAtOnce);
    for (std::int64_t term = 0; term < k; term += kBlock) {
      const std::int64_t terms = smaller_of(k - term, kBlock);
      for (std::int64_t i = 0; i < terms; ++i) fill(term + i, row, rows, square[i]);
      copy<std::uint32_t>({terms, rows}, {square, sizeof(square[0]), 4},
                          {target.data + row * target.stride + term, 4, target.stride * 4});
    }
  }
}

// What lies in the scratch of a product: panels, columns of b before they are transposed, and a.
struct ProductScratch {
  float *panels, *columns, *a;
};
TW_INLINE std::int64_t panels_floats(std::int64_t n, std::int64_t k) {
  return smaller_of(k, kTerms) * rounded_up(smaller_of(n, kColumns), kPanel);
}
TW_INLINE std::int64_t buffer_floats(std::int64_t k) {
  return buffer_stride(smaller_of(k, kTerms)) * kPanel;
}
TW_INLINE ProductScratch scratch_of(const Product& p) {
  float* const data = static_cast<float*>(p.scratch);
  // A panel of pairs has a row for an odd last term too.
  float* const columns = data + panels_floats(p.n, p.k + 1);
  return {data, columns, columns + buffer_floats(p.k)};
}

// The vectors that columns of a panel are in get zeros where there are none.
TW_INLINE void clear_rest(std::int64_t k, std::int64_t columns, float* packed) {
  const std::int64_t end = (columns + kLanes - 1) / kLanes * kLanes;
  if (end == columns) return;
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = columns; j < end; ++j) packed[i * kPanel + j] = 0;
  }
}

// What a product of no terms is.
TW_INLINE void clear(const Product& p) {
  for (std::int64_t row = 0; row < p.m; ++row) {
    __builtin_memset(static_cast<char*>(p.c.data) + row * p.c.row_stride, 0,
                     static_cast<std::size_t>(rounded_up(p.n, kBlock)) * sizeof(float));
  }
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
