#pragma once

#include "cpu/kernels/convert.h"
#include "cpu/kernels/few_rows.h"

// Products of f32. b is packed into panels of kPanel columns, one behind the other in ascending
// order of k, and narrower elements are widened on the way. Every element of c is one sum in that
// order.
namespace tilewright::cpu::TW_LEVEL {
namespace {

template <Rounding rounding>
TW_INLINE Floats add_product(Floats a, Floats b, Floats sum) {
  return rounding == Rounding::apart ? sum + a * b : fused(a, b, sum);
}

// a {m, k} with the terms of a row side by side.
struct ByRows {
  static constexpr std::int64_t kAtOnce = kRows;
  FloatRows rows;
  TW_INLINE ByRows from(std::int64_t row, std::int64_t term) const {
    return {{rows.data + row * rows.stride + term, rows.stride}};
  }
  TW_INLINE float at(int row, std::int64_t term) const {
    return rows.data[row * rows.stride + term];
  }
  TW_INLINE Span terms_not_zero(std::int64_t count, std::int64_t terms) const {
    return not_zero(count, terms, [&](std::int64_t row, std::int64_t term) {
      return is_zero(rows.data + row * rows.stride + term, kOfFloat);
    });
  }
};

// The same with the rows of a term side by side: of a transposed tile, which needs no copy.
struct ByTerms {
  static constexpr std::int64_t kAtOnce = kTransposedRows;
  const float* data;
  std::int64_t stride;  // to the next term
  TW_INLINE ByTerms from(std::int64_t row, std::int64_t term) const {
    return {data + row + term * stride, stride};
  }
  TW_INLINE float at(int row, std::int64_t term) const { return data[term * stride + row]; }
  TW_INLINE Span terms_not_zero(std::int64_t count, std::int64_t terms) const {
    const auto is_zero_in_all_rows = [&](std::int64_t term) {
      for (std::int64_t row = 0; row < count; row += kBlock) {
        if (!is_zero(from(row, term).data, kOfFloat)) return false;
      }
      return true;
    };
    Span span = {0, terms};
    while (span.end > 0 && is_zero_in_all_rows(span.end - 1)) --span.end;
    while (span.begin < span.end && is_zero_in_all_rows(span.begin)) ++span.begin;
    return span;
  }
};
// Terms that lie further apart, as those of tensors do, would be of too many pages and too few sets
// of the caches.
constexpr std::int64_t kBytesToNextTerm = 2048;

// c {rows, vectors} += a {rows, k} panel {k, vectors}; or c = that.
template <Rounding rounding, int rows, int vectors, typename A>
void multiply(std::int64_t k, A a, const float* panel, FloatRows c, bool from_zero) {
  Sums<rows, vectors> sums;
  sums.start(c, from_zero);
  for (std::int64_t i = 0; i < k; ++i) {
    Floats b[vectors];
    unrolled<vectors>([&](auto v) { b[v.value] = load(panel + i * kPanel + v.value * kLanes); });
    unrolled<rows>([&](auto r) {
      const Floats factor = splat(a.at(r.value, i));
      unrolled<vectors>([&](auto v) {
        Floats& sum = sums.at[r.value][v.value];
        sum = add_product<rounding>(factor, b[v.value], sum);
      });
    });
  }
  sums.end(c);
}

template <typename T>
void pack_panel(std::int64_t k, std::int64_t columns, Matrix b, float* packed, float* buffer) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  if (b.column_stride == kBytes) {
    for (std::int64_t i = 0; i < k; ++i) {
      const T* const from = element<T>(b, i, 0);
      float* const to = packed + i * kPanel;
      if ((__is_same(T, float) || __is_same(T, Bf16)) && columns == kPanel) {
        // As vectors: compilers make single elements of so short a loop.
        unrolled<kSumVectors>(
            [&](auto v) { store(to + v.value * kLanes, load_as_floats(from + v.value * kLanes)); });
      } else if (columns == kPanel) {
        convert_row(from, to, kPanel);
      } else {
        convert_row(from, to, columns);
      }
    }
  } else if (b.row_stride == kBytes && __is_same(T, float) && b.column_stride % 4 == 0) {
    pack_columns(k, columns, element<float>(b, 0, 0), b.column_stride / 4, packed, buffer);
  } else {
    // The columns of b as rows of floats.
    for (std::int64_t j = 0; j < columns; ++j) {
      float* const to = buffer + j * buffer_stride(k);
      if (b.row_stride == kBytes) {
        convert_row(element<T>(b, 0, j), to, k);
      } else {
        for (std::int64_t i = 0; i < k; ++i) to[i] = widen(*element<T>(b, i, j));
      }
    }
    pack_transposed(k, columns, buffer, buffer_stride(k), packed);
  }
  clear_rest(k, columns, packed);
}

template <typename T>
void widen_rows(Shape shape, Matrix source, FloatRows target) {
  if (source.row_stride == sizeof(T) && source.column_stride != sizeof(T)) {
    return fill_transposed(shape.rows, shape.columns, target,
                           [&](std::int64_t term, std::int64_t row, std::int64_t count, float* to) {
                             convert_row(element<T>(source, row, term), to, count);
                           });
  }
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    float* const to = target.data + row * target.stride;
    if (source.column_stride == sizeof(T)) {
      convert_row(element<T>(source, row, 0), to, shape.columns);
    } else {
      for (std::int64_t i = 0; i < shape.columns; ++i) to[i] = widen(*element<T>(source, row, i));
    }
  }
}

template <typename T>
FloatRows a_as_floats(const Product& p, float* scratch) {
  if (__is_same(T, float) && p.a.column_stride == 4 && p.a.row_stride % 4 == 0) {
    return {static_cast<float*>(p.a.data), p.a.row_stride / 4};
  }
  const FloatRows rows = {scratch, buffer_stride(p.k)};
  widen_rows<T>({p.m, p.k}, p.a, rows);
  return rows;
}

struct RowsOfFloats {
  const float* data;
  std::int64_t stride, count;
  TW_INLINE const float* at(std::int64_t i, std::int64_t column) const {
    return data + i * stride + column;
  }
  TW_INLINE void ask_ahead_of(std::int64_t i, std::int64_t column) const {
    prefetch_rows(i, count, [&](std::int64_t row) { return at(row, column); });
  }
  TW_INLINE Floats load(std::int64_t i, std::int64_t column) const {
    return cpu::TW_LEVEL::load(at(i, column));
  }
};

// Whether b lies so that it can be read in place.
template <Rounding rounding>
bool multiply_few_rows(const Product& p, FloatRows a, float* buffer) {
  const auto add = [](const float* factor, Floats b, Floats sum) {
    return add_product<rounding>(splat(*factor), b, sum);
  };
  const auto* const b = static_cast<const float*>(p.b.data);
  if (p.b.row_stride == 4 && p.b.column_stride % 4 == 0) {
    multiply_columns(p, p.k, a, b, p.b.column_stride / 4, buffer, add);
    return true;
  }
  if (p.b.column_stride != 4 || p.b.row_stride % 4 != 0 || p.n % kLanes != 0) return false;
  multiply_rows(p, p.k, a, RowsOfFloats{b, p.b.row_stride / 4, p.k}, add);
  return true;
}

template <typename T, Rounding rounding, typename A>
void product_in_order(const Product& p, const ProductScratch& scratch, A a) {
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  const auto pack = [&](const PackedPart& part) {
    for (std::int64_t left = 0; left < part.columns; left += kPanel) {
      const Matrix b = {element<T>(p.b, part.first_term, part.first_column + left), p.b.row_stride,
                        p.b.column_stride};
      pack_panel<T>(part.terms, smaller_of(part.columns - left, kPanel), b,
                    packed_column(part.panels, part.terms, left), scratch.columns);
    }
  };
  for_parts<A::kAtOnce>(
      p, scratch.panels, pack,
      [&](const PackedPart& part, std::int64_t top, std::int64_t rows) {
        if (!p.skips_zeros) return Span{0, part.terms};
        return a.from(top, part.first_term).terms_not_zero(rows, part.terms);
      },
      [&](const PackedPart& part, Span terms, std::int64_t row, std::int64_t column, auto rows,
          auto vectors) {
        multiply<rounding, decltype(rows)::value, decltype(vectors)::value>(
            terms.end - terms.begin, a.from(row, part.first_term + terms.begin),
            packed_column(part.panels, part.terms, column) + terms.begin * kPanel,
            {c.data + row * c.stride + part.first_column + column, c.stride},
            !p.accumulates && part.first_term == 0);
      });
}

template <typename T, Rounding rounding>
void product_in_order(const Product& p) {
  const ProductScratch scratch = scratch_of(p);
  if constexpr (__is_same(T, float)) {
    const bool is_transposed =
        p.a.row_stride == 4 && p.a.column_stride % 4 == 0 && p.a.column_stride <= kBytesToNextTerm;
    if (is_transposed && p.m > kFewRows) {
      const ByTerms a = {static_cast<const float*>(p.a.data), p.a.column_stride / 4};
      return product_in_order<T, rounding>(p, scratch, a);
    }
  }
  const FloatRows a = a_as_floats<T>(p, scratch.a);
  if constexpr (__is_same(T, float)) {
    if (p.m <= kFewRows && multiply_few_rows<rounding>(p, a, scratch.columns)) return;
  }
  product_in_order<T, rounding>(p, scratch, ByRows{a});
}

template <typename T>
void product_of(const Product& p) {
  // An f32 holds the products of F16 and F8, which are not rounded either way. Those of Bf16 leave
  // its range where they are very large or small.
  if constexpr (__is_same(T, float) || __is_same(T, Bf16)) {
    if (p.rounding == Rounding::apart) return product_in_order<T, Rounding::apart>(p);
  }
  product_in_order<T, Rounding::fused>(p);
}

// Of integers: b lies in the scratch as i32 {k, n}. All wraps.
template <typename T>
void product_of_integers(const Product& p) {
  if (!p.accumulates) clear(p);
  auto* const b = static_cast<std::uint32_t*>(p.scratch);
  for (std::int64_t i = 0; i < p.k; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      b[i * p.n + j] = static_cast<std::uint32_t>(*element<T>(p.b, i, j));
    }
  }
  for (std::int64_t row = 0; row < p.m; ++row) {
    auto* const c =
        reinterpret_cast<std::uint32_t*>(static_cast<char*>(p.c.data) + row * p.c.row_stride);
    for (std::int64_t i = 0; i < p.k; ++i) {
      const auto factor = static_cast<std::uint32_t>(*element<T>(p.a, row, i));
      const std::uint32_t* const from = b + i * p.n;
      TW_INDEPENDENT
      for (std::int64_t j = 0; j < p.n; ++j) c[j] += factor * from[j];
    }
  }
}

std::int64_t product_scratch(std::int64_t m, std::int64_t n, std::int64_t k, Element element) {
  if (element == Element::i32 || element == Element::i64) return k * n * 4;
  return (panels_floats(n, k + 1) + buffer_floats(k) + m * buffer_stride(k)) * 4;
}

void product(const Product& p) {
  if (p.k == 0 && !p.accumulates) clear(p);
  switch (p.element) {
    case Element::f32:
      return product_of<float>(p);
    case Element::f16:
      return product_of<F16>(p);
    case Element::bf16:
      return product_of<Bf16>(p);
    case Element::f8e4m3:
      return product_of<F8>(p);
    case Element::i32:
      return product_of_integers<std::int32_t>(p);
    case Element::i64:
      return product_of_integers<std::int64_t>(p);
    case Element::i8:
    case Element::u8:
    case Element::u32:
    case Element::boolean:
    case Element::count:
      break;
  }
  __builtin_trap();  // the verifier knows no such product
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
