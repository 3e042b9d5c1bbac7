#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/ir.h"

// The meaning of the elementwise functions and of cast, on contiguous arrays of `count` elements.
// How an element is held: floating dtypes as float (or double, where nothing is rounded), integer
// dtypes as std::int64_t, booleans as std::uint8_t 0 or 1.
//
// Floats: each function rounds once to float, then to the result's dtype where that is narrower.
// Integers: a result that does not fit the dtype and a division by zero are usage errors at
// `where`, but for elements that may not exist.
namespace tilewright::simulator {

struct Elementwise {
  ir::Op op = ir::Op::add;
  DType dtype = DType::f32;  // of the result
  SourceLocation where;
  // A register holds elements past its tile's extents too: what they have no result for is 0, or
  // whatever 64 bits leave of it.
  bool may_not_exist = false;
  // exp, exp2, log, sin and cos as CUDA's instructions make them (docs/numerics.md).
  bool by_instructions = false;
};

// Functions whose result is held as their operands are. It may be one of the operands.
void evaluate(const Elementwise& function, std::size_t count, const float* const* operands,
              float* result);
void evaluate(const Elementwise& function, std::size_t count, const double* const* operands,
              double* result);
void evaluate(const Elementwise& function, std::size_t count, const std::int64_t* const* operands,
              std::int64_t* result);
void evaluate(const Elementwise& function, std::size_t count, const std::uint8_t* const* operands,
              std::uint8_t* result);

// result = f(result, row) for each of `rows` rows of `width` elements, in order.
void fold(const Elementwise& function, std::size_t rows, std::size_t width, const float* const* x,
          float* result);
template <typename T>
void fold(const Elementwise& function, std::size_t rows, std::size_t width, const T* const* x,
          T* result) {
  for (std::size_t row = 0; row < rows; ++row) {
    const T* const operands[] = {result, x[row]};
    evaluate(function, width, operands, result);
  }
}

template <typename T>
void compare(const Elementwise& function, std::size_t count, const T* a, const T* b,
             std::uint8_t* result);

template <typename T>
void select(std::size_t count, const std::uint8_t* condition, const T* a, const T* b, T* result) {
  for (std::size_t i = 0; i < count; ++i) result[i] = condition[i] ? a[i] : b[i];
}

// cast: to the nearest, ties to even. A float beyond an integer dtype becomes its nearest bound and
// NaN becomes 0; so does an integer beyond i8 or u8, and one that does not fit i32 is an error.
template <typename From, typename To>
void convert(const Elementwise& function, std::size_t count, const From* source, To* result);

// What `function` (add, min or max) gives for no elements at all.
template <typename T>
T reduce_identity(ir::Op function, DType dtype);

// Raises unless the value fits the integer dtype.
void check_fits(DType dtype, std::int64_t value, ir::Op op, SourceLocation where);

}  // namespace tilewright::simulator
