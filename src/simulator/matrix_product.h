#pragma once

#include <cstdint>

namespace tilewright::simulator {

// A row-major matrix: element (i, j) at data[i * stride + j].
template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;
};

// c {m, n} += a {m, k} b {k, n}. Each element adds its k products one after the other, ascending,
// each product and each sum rounded to T. Nothing outside the three extents is read or written.
template <typename T>
void multiply_add(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                  Matrix<const T> b, Matrix<T> c);

}  // namespace tilewright::simulator
