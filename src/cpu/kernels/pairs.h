#pragma once

#include "cpu/kernels/few_rows.h"
#include "cpu/kernels/tables.h"

// Products of bf16 whose terms come in pairs, by an instruction that adds two of them at once. It
// takes subnormals for 0 and rounds inside of a pair. Sets without it have nothing of this.
#if defined(__AVX512BF16__) || defined(__aarch64__)
namespace tilewright::cpu::TW_LEVEL {
namespace {

TW_INLINE Floats add_pairs(Floats sum, Ints a, Ints b) {
#if defined(__x86_64__)
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
#else
  return vbfdotq_f32(sum, (bfloat16x8_t)a, (bfloat16x8_t)b);
#endif
}

// Asks memory for so many lines.
TW_APART void ask_ahead(TilesAhead& ahead, std::int64_t lines) {
  constexpr std::int64_t kLine = 64;
  while (lines > 0 && ahead.count > 0) {
    TilesAhead::Rows& rows = ahead.tiles[0];
    for (; lines > 0 && ahead.at < rows.bytes; --lines, ahead.at += kLine) {
      __builtin_prefetch(rows.data + ahead.at);
    }
    if (ahead.at < rows.bytes) return;
    ahead.at = 0;
    rows.data += rows.stride;
    if (--rows.count > 0) continue;
    --ahead.count;
    for (int i = 0; i < ahead.count; ++i) ahead.tiles[i] = ahead.tiles[i + 1];
  }
}
// A block of sums asks for a line in the time of so many pairs: memory answers so fast.
constexpr std::int64_t kPairsOfLine = 4;

// `count` blocks of rows one below the other.
template <int rows, int vectors>
TW_APART void multiply_pairs(std::int64_t count, std::int64_t pairs, PairRows a, const float* panel,
                             FloatRows c, bool from_zero, TilesAhead* ahead) {
  for (; count > 0; --count, a.data += rows * a.stride, c.data += rows * c.stride) {
    Sums<rows, vectors> sums;
    sums.start(c, from_zero);
    for (std::int64_t i = 0; i < pairs; ++i) {
      Ints b[vectors];
      unrolled<vectors>(
          [&](auto v) { b[v.value] = bits_of(load(panel + i * kPanel + v.value * kLanes)); });
      unrolled<rows>([&](auto r) {
        std::int32_t pair;
        __builtin_memcpy(&pair, a.data + r.value * a.stride + i * 4, 4);
        const Ints factor = splat_int(pair);
        unrolled<vectors>([&](auto v) {
          Floats& sum = sums.at[r.value][v.value];
          sum = add_pairs(sum, factor, b[v.value]);
        });
      });
    }
    sums.end(c);
    if (ahead && ahead->count > 0) ask_ahead(*ahead, pairs / kPairsOfLine);
  }
}

// Blocks of fewer vectors have more rows: each sum waits for the one before, so that there are to
// be many. By the logarithms of vectors and of rows, as far as the registers hold them.
using MultiplyPairs = void (*)(std::int64_t count, std::int64_t pairs, PairRows a,
                               const float* panel, FloatRows c, bool from_zero, TilesAhead* ahead);
constexpr int kSums = kSumRows * kSumVectors;
template <int rows, int vectors>
constexpr MultiplyPairs if_it_fits() {
  if constexpr (rows * vectors <= kSums && vectors <= kSumVectors) {
    return multiply_pairs<rows, vectors>;
  } else {
    return nullptr;
  }
}
template <int vectors>
struct OfVectors {
  MultiplyPairs of_rows[5] = {if_it_fits<1, vectors>(), if_it_fits<2, vectors>(),
                              if_it_fits<4, vectors>(), if_it_fits<8, vectors>(),
                              if_it_fits<16, vectors>()};
};
constexpr OfVectors<1> kOfVector;
constexpr OfVectors<2> kOfTwo;
constexpr OfVectors<4> kOfFour;
constexpr const MultiplyPairs* kMultiplyPairs[] = {kOfVector.of_rows, kOfTwo.of_rows,
                                                   kOfFour.of_rows};

// The logarithm of the largest power of two that is not above either.
TW_INLINE int logarithm(std::int64_t left, std::int64_t most) {
  return 63 - __builtin_clzll(static_cast<unsigned long long>(smaller_of(left, most)));
}

TW_INLINE std::uint32_t pair_of(std::uint32_t first, std::uint32_t second) {
  return first | second << 16;
}

TW_INLINE std::int64_t pairs_of(std::int64_t k) { return (k + 1) / 2; }

// A row of pairs, of two rows of b; `second` may be none.
TW_INLINE void interleave(std::int64_t columns, const std::uint16_t* first,
                          const std::uint16_t* second, std::uint32_t* packed) {
  if (!second) {
    for (std::int64_t j = 0; j < columns; ++j) packed[j] = first[j];
  } else if (columns == kPanel) {
    for (std::int64_t j = 0; j < kPanel; ++j) packed[j] = pair_of(first[j], second[j]);
  } else {
    for (std::int64_t j = 0; j < columns; ++j) packed[j] = pair_of(first[j], second[j]);
  }
}

void pack_pairs(std::int64_t k, std::int64_t columns, Matrix b, float* panel, float* buffer) {
  const std::int64_t pairs = (k + 1) / 2;
  auto* const words = reinterpret_cast<std::uint32_t*>(panel);
  const auto at = [&b](std::int64_t i, std::int64_t j) { return element<std::uint16_t>(b, i, j); };
  std::int64_t done = 0;
  if (b.row_stride == 2 && b.column_stride % 4 == 0) {
    done = k / 2;
    pack_columns(done, columns, element<float>(b, 0, 0), b.column_stride / 4, panel, buffer);
  }
  for (; done < pairs; ++done) {
    const std::int64_t i = 2 * done;
    std::uint32_t* const to = words + done * kPanel;
    if (b.column_stride == 2) {
      interleave(columns, at(i, 0), i + 1 < k ? at(i + 1, 0) : nullptr, to);
      continue;
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      to[j] = pair_of(*at(i, j), i + 1 < k ? *at(i + 1, j) : 0);
    }
  }
  clear_rest(pairs, columns, panel);
}

// Of two rows that lie one behind the other; of each a vector of columns.
TW_INLINE Floats load_pairs(const std::uint16_t* first, const std::uint16_t* second) {
  const auto words = [](const std::uint16_t* p) {
    HalfWords half;
    __builtin_memcpy(&half, p, sizeof(half));
    return __builtin_convertvector(half, Words);
  };
  return reinterpret_cast<Floats>(words(first) | words(second) << 16);
}

struct RowsOfPairs {
  Matrix b;
  std::int64_t count;  // of b's rows
  TW_INLINE void ask_ahead_of(std::int64_t pair, std::int64_t column) const {
    const auto at = [&](std::int64_t i) { return element<std::uint16_t>(b, i, column); };
    prefetch_rows(2 * pair, count, at);
    prefetch_rows(2 * pair + 1, count, at);
  }
  TW_INLINE Floats load(std::int64_t pair, std::int64_t column) const {
    return load_pairs(element<std::uint16_t>(b, 2 * pair, column),
                      element<std::uint16_t>(b, 2 * pair + 1, column));
  }
};

// Whether all lie so that they can be read in place.
bool multiply_few_rows(const Product& p, PairRows pairs, float* buffer) {
  if (p.k % 2 != 0 || pairs.stride % 4 != 0) return false;
  const FloatRows a = {reinterpret_cast<float*>(const_cast<char*>(pairs.data)), pairs.stride / 4};
  const auto add = [](const float* factor, Floats b, Floats sum) {
    std::int32_t pair;
    __builtin_memcpy(&pair, factor, 4);
    return add_pairs(sum, splat_int(pair), bits_of(b));
  };
  if (p.b.row_stride == 2 && p.b.column_stride % 4 == 0) {
    multiply_columns(p, p.k / 2, a, static_cast<const float*>(p.b.data), p.b.column_stride / 4,
                     buffer, add);
    return true;
  }
  if (p.b.column_stride != 2 || p.n % kLanes != 0) return false;
  multiply_rows(p, p.k / 2, a, RowsOfPairs{p.b, p.k}, add);
  return true;
}

void pack_part_in_pairs(const Product& p, const PackedPart& part, const ProductScratch& scratch) {
  static_assert(kTerms % 2 == 0);
  for (std::int64_t left = 0; left < part.columns; left += kPanel) {
    const Matrix b = {element<void>(p.b, part.first_term, part.first_column + left), p.b.row_stride,
                      p.b.column_stride};
    pack_pairs(part.terms, smaller_of(part.columns - left, kPanel), b,
               packed_column(part.panels, pairs_of(part.terms), left), scratch.columns);
  }
}

void product_in_pairs(const Product& p) {
  if (p.k == 0 && !p.accumulates) clear(p);
  const ProductScratch scratch = scratch_of(p);
  const PairRows a = a_as_pairs(p, scratch.a);
  if (p.m <= kFewRows && multiply_few_rows(p, a, scratch.columns)) return;
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  const auto pack = [&](const PackedPart& part) { pack_part_in_pairs(p, part, scratch); };
  const auto at = [&](const PackedPart& part, std::int64_t row, std::int64_t pair) {
    return a.data + row * a.stride + part.first_term * 2 + pair * 4;
  };
  // Under a mask, or where zeros are, fewer rows are looked at together.
  const std::int64_t step = p.needed.data || p.skips_zeros ? kBlock : kRows;
  for_packed_parts<2>(p, scratch.panels, pack, [&](const PackedPart& part) {
    const std::int64_t pairs = pairs_of(part.terms);
    for (std::int64_t top = 0; top < p.m; top += step) {
      const std::int64_t end = smaller_of(top + step, p.m);
      const Span needed = needed_columns(p, part, top, end - top);
      Span terms = {0, pairs};
      if (p.skips_zeros) {
        terms = not_zero(end - top, pairs, [&](std::int64_t row, std::int64_t pair) {
          return is_zero(at(part, top + row, pair), kOfPair);
        });
      }
      int vectors = 0;
      for (std::int64_t column = needed.begin / kPanel * kPanel; column < needed.end;
           column += (1 << vectors) * kLanes) {
        const std::int64_t in_panel = kSumVectors - column % kPanel / kLanes;
        vectors = logarithm((needed.end - column + kLanes - 1) / kLanes, in_panel);
        std::int64_t count = 0;
        int rows = 0;
        for (std::int64_t row = top; row < end; row += count << rows) {
          rows = logarithm(end - row, kSums >> vectors);
          count = (end - row) >> rows;
          kMultiplyPairs[vectors][rows](
              count, terms.end - terms.begin, {at(part, row, terms.begin), a.stride},
              packed_column(part.panels, pairs, column) + terms.begin * kPanel,
              {c.data + row * c.stride + part.first_column + column, c.stride},
              !p.accumulates && part.first_term == 0, p.ahead);
        }
      }
      const bool is_whole = part.columns == p.n && part.first_term + part.terms == p.k;
      if (p.done != nullptr && is_whole) p.done->call(p.done->context, end);
    }
  });
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
#endif
