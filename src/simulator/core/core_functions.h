#pragma once

#include <vector>

#include "simulator/core/core_memory.h"

// What units compute.
namespace tilewright::simulator {

// Of another dtype.
CoreValues converted(const CoreValues& values, DType dtype, SourceLocation where);
// Adds left x right, over the first k, to the result.
void multiply(const CoreValues& left, const CoreValues& right, std::int64_t k, CoreValues& result);
// An operand of a function: a matrix, or a number where it is null.
struct CoreOperandValue {
  const CoreValues* values = nullptr;
  CoreNumber number;
  DType dtype = DType::f32;  // of the number
};
void apply(ir::Op function, const std::vector<CoreOperandValue>& operands, CoreValues& result,
           SourceLocation where);
void reduce_along(ir::Op function, std::int64_t axis, const CoreValues& values, CoreValues& result,
                  SourceLocation where);

}  // namespace tilewright::simulator
