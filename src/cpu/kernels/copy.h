#pragma once

#include "cpu/kernels/vectors.h"

// Elements of any kind, by their size, from and to where they have any strides.
namespace tilewright::cpu::TW_LEVEL {
namespace {

template <typename T>
TW_INLINE T* element(const Matrix& x, std::int64_t row, std::int64_t column) {
  return reinterpret_cast<T*>(static_cast<char*>(x.data) + row * x.row_stride +
                              column * x.column_stride);
}

template <typename T>
void copy_rows(Shape shape, Matrix source, Matrix target) {
  const auto bytes = static_cast<std::size_t>(shape.columns) * sizeof(T);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    __builtin_memcpy(element<T>(target, row, 0), element<T>(source, row, 0), bytes);
  }
}

// Square by square, so that each line of memory is used up while it is near.
template <typename T>
void copy_squares(Shape shape, Matrix source, Matrix target) {
  constexpr std::int64_t kSide = 16;
  for (std::int64_t top = 0; top < shape.rows; top += kSide) {
    const std::int64_t bottom = top + kSide < shape.rows ? top + kSide : shape.rows;
    for (std::int64_t left = 0; left < shape.columns; left += kSide) {
      const std::int64_t right = left + kSide < shape.columns ? left + kSide : shape.columns;
      for (std::int64_t row = top; row < bottom; ++row) {
        for (std::int64_t column = left; column < right; ++column) {
          *element<T>(target, row, column) = *element<T>(source, row, column);
        }
      }
    }
  }
}

template <typename T>
void copy(Shape shape, Matrix source, Matrix target) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  if (shape.columns <= 0) return;
  if (source.column_stride == kBytes && target.column_stride == kBytes) {
    copy_rows<T>(shape, source, target);
  } else {
    copy_squares<T>(shape, source, target);
  }
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
