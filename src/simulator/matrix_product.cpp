#include "simulator/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "simulator/vector_clones.h"

namespace tilewright::simulator {
namespace {

constexpr std::int64_t kRows = 4;

// A run of columns of one row: what the widest vectors hold.
template <typename T>
struct Lanes {
  static constexpr std::int64_t count = 64 / sizeof(T);
  typedef T Vector __attribute__((vector_size(64)));
};

// A whole run, whose size the compiler knows, takes no call.
template <typename T>
TW_INLINE void copy_run(void* to, const void* from, std::int64_t columns) {
  if (columns == Lanes<T>::count) {
    std::memcpy(to, from, sizeof(typename Lanes<T>::Vector));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(T));
  }
}

// `panel` holds b's columns, Lanes::count of them a row of k.
template <typename T>
TW_INLINE void multiply_panel(std::int64_t k, const T* const (&a)[kRows], const T* panel,
                              typename Lanes<T>::Vector (&sum)[kRows]) {
  using Vector = typename Lanes<T>::Vector;
  Vector s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
  for (std::int64_t i = 0; i < k; ++i) {
    Vector b;
    std::memcpy(&b, panel + i * Lanes<T>::count, sizeof(b));
    s0 += a[0][i] * b;
    s1 += a[1][i] * b;
    s2 += a[2][i] * b;
    s3 += a[3][i] * b;
  }
  sum[0] = s0;
  sum[1] = s1;
  sum[2] = s2;
  sum[3] = s3;
}

template <typename T>
TW_INLINE void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                        Matrix<const T> b, Matrix<T> c) {
  constexpr std::int64_t lanes = Lanes<T>::count;
  std::vector<T> panel(static_cast<std::size_t>(std::max<std::int64_t>(k, 1) * lanes));
  for (std::int64_t column = 0; column < n; column += lanes) {
    const std::int64_t columns = std::min(lanes, n - column);
    for (std::int64_t i = 0; i < k; ++i) {
      copy_run<T>(&panel[static_cast<std::size_t>(i * lanes)], b.data + i * b.stride + column,
                  columns);
    }
    for (std::int64_t row = 0; row < m; row += kRows) {
      const std::int64_t rows = std::min(kRows, m - row);
      const T* sources[kRows];
      typename Lanes<T>::Vector sums[kRows] = {};
      for (std::int64_t r = 0; r < kRows; ++r) {
        const std::int64_t real = row + std::min(r, rows - 1);  // a missing row repeats the last
        sources[r] = a.data + real * a.stride;
        copy_run<T>(&sums[r], c.data + real * c.stride + column, columns);
      }
      multiply_panel<T>(k, sources, panel.data(), sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        copy_run<T>(c.data + (row + r) * c.stride + column, &sums[r], columns);
      }
    }
  }
}

TW_VECTOR_CLONES void multiply_singles(std::int64_t m, std::int64_t n, std::int64_t k,
                                       Matrix<const float> a, Matrix<const float> b,
                                       Matrix<float> c) {
  multiply(m, n, k, a, b, c);
}
TW_VECTOR_CLONES void multiply_doubles(std::int64_t m, std::int64_t n, std::int64_t k,
                                       Matrix<const double> a, Matrix<const double> b,
                                       Matrix<double> c) {
  multiply(m, n, k, a, b, c);
}

}  // namespace

template <>
void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const float> a,
                  Matrix<const float> b, Matrix<float> c) {
  multiply_singles(m, n, k, a, b, c);
}
template <>
void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const double> a,
                  Matrix<const double> b, Matrix<double> c) {
  multiply_doubles(m, n, k, a, b, c);
}

}  // namespace tilewright::simulator
