#include "simulator/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tilewright::simulator {
namespace {

constexpr std::int64_t kRows = 4;

// A run of columns of one row: as wide as keeps kRows of them in the 16 vector registers of the
// oldest x86-64.
template <typename T>
struct Lanes {
  static constexpr std::int64_t count = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
};

// `panel` holds b's columns, Lanes::count of them a row of k.
template <typename T>
void multiply_panel(std::int64_t k, const T* const (&a)[kRows], const T* panel,
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

}  // namespace

template <typename T>
void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                  Matrix<const T> b, Matrix<T> c) {
  constexpr std::int64_t lanes = Lanes<T>::count;
  std::vector<T> panel(static_cast<std::size_t>(std::max<std::int64_t>(k, 1) * lanes));
  for (std::int64_t column = 0; column < n; column += lanes) {
    const std::int64_t columns = std::min(lanes, n - column);
    const std::size_t bytes = static_cast<std::size_t>(columns) * sizeof(T);
    for (std::int64_t i = 0; i < k; ++i) {
      std::memcpy(&panel[static_cast<std::size_t>(i * lanes)], b.data + i * b.stride + column,
                  bytes);
    }
    for (std::int64_t row = 0; row < m; row += kRows) {
      const std::int64_t rows = std::min(kRows, m - row);
      const T* sources[kRows];
      typename Lanes<T>::Vector sums[kRows] = {};
      for (std::int64_t r = 0; r < kRows; ++r) {
        const std::int64_t real = row + std::min(r, rows - 1);  // a missing row repeats the last
        sources[r] = a.data + real * a.stride;
        std::memcpy(&sums[r], c.data + real * c.stride + column, bytes);
      }
      multiply_panel(k, sources, panel.data(), sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        std::memcpy(c.data + (row + r) * c.stride + column, &sums[r], bytes);
      }
    }
  }
}

template void multiply_add(std::int64_t, std::int64_t, std::int64_t, Matrix<const float>,
                           Matrix<const float>, Matrix<float>);
template void multiply_add(std::int64_t, std::int64_t, std::int64_t, Matrix<const double>,
                           Matrix<const double>, Matrix<double>);

}  // namespace tilewright::simulator
