#pragma once

#include "cpu/kernels/transpose.h"

// Elements of any kind, by their size, from and to where they have any strides.
namespace tilewright::cpu::TW_LEVEL {
namespace {

template <typename T>
TW_INLINE T* element(const Matrix& x, std::int64_t row, std::int64_t column) {
  return reinterpret_cast<T*>(static_cast<char*>(x.data) + row * x.row_stride +
                              column * x.column_stride);
}

template <typename T>
void copy_rows(Shape shape, const Matrix& source, const Matrix& target) {
  const auto bytes = static_cast<std::size_t>(shape.columns) * sizeof(T);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    __builtin_memcpy(element<T>(target, row, 0), element<T>(source, row, 0), bytes);
  }
}

// One element of each row of the source all over that of the target.
template <typename T>
void repeat_elements(Shape shape, Matrix source, Matrix target) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const T value = *element<T>(source, row, 0);
    repeat(value, element<T>(target, row, 0), shape.columns);
  }
}

// Square by square, so that each line of memory is used up while it is near.
template <typename T>
void copy_squares(Shape shape, const Matrix& source, const Matrix& target) {
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

// The source's rows lie side by side, and the target's columns: of 4 bytes an element.
TW_INLINE void copy_transposed(Shape shape, const Matrix& source, const Matrix& target) {
  const std::int64_t rows = shape.rows / kLanes * kLanes, columns = shape.columns / 4 * 4;
  for (std::int64_t row = 0; row < rows; row += kLanes) {
    for (std::int64_t column = 0; column < columns; column += 4) {
      Floats result[4];
      transpose_four(element<float>(source, row, column), source.row_stride / 4, result);
      for (int i = 0; i < 4; ++i) store(element<float>(target, row, column + i), result[i]);
    }
  }
  const auto part = [&](std::int64_t row, std::int64_t column, Shape rest) {
    copy_squares<std::uint32_t>(
        rest, {element<void>(source, row, column), source.row_stride, source.column_stride},
        {element<void>(target, row, column), target.row_stride, target.column_stride});
  };
  part(0, columns, {rows, shape.columns - columns});
  part(rows, 0, {shape.rows - rows, shape.columns});
}

template <typename T>
void copy(Shape shape, const Matrix& source, const Matrix& target) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  if (shape.columns <= 0) return;
  if (source.column_stride == kBytes && target.column_stride == kBytes) {
    return copy_rows<T>(shape, source, target);
  }
  if (source.column_stride == 0 && target.column_stride == kBytes) {
    return repeat_elements<T>(shape, source, target);
  }
  if constexpr (sizeof(T) == 4) {
    if (source.column_stride == 4 && target.row_stride == 4 && source.row_stride % 4 == 0) {
      return copy_transposed(shape, source, target);
    }
    if (source.row_stride == 4 && target.column_stride == 4 && source.column_stride % 4 == 0) {
      return copy_transposed({shape.columns, shape.rows},
                             {source.data, source.column_stride, source.row_stride},
                             {target.data, target.column_stride, target.row_stride});
    }
  }
  copy_squares<T>(shape, source, target);
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
