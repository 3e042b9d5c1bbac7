#pragma once

#include <cstdint>

#include "ir/descriptor.h"
#include "tilewright/dtype.h"

// What tcgen05.mma is told: the instruction descriptor, which says what is multiplied, and the
// descriptors of its operands in shared memory.
namespace tilewright::ir {

// Of operands of one dtype, with sums in f32. m and n are those of all CTAs that multiply.
struct TensorProductShape {
  DType element = DType::bf16;
  std::int64_t m = 0, n = 0;
  Major a = Major::k, b = Major::k;
  std::int64_t ctas = 1;  // 2 are a pair
};

// Why no product has that shape; empty where one has.
std::string problem_of(const TensorProductShape& shape);
// Columns of tensor memory that the result takes. Of a pair that has 64 rows in each CTA the second
// half of n lies in the lanes behind those of the first, in the same columns.
std::int64_t result_columns(const TensorProductShape& shape);
// The descriptor's 32 bits. Raises for a shape that has a problem.
std::uint32_t instruction_descriptor(const TensorProductShape& shape, SourceLocation where = {});

// As wgmma_operand: the canonical layouts are those of wgmma.
WgmmaOperand tensor_operand(const SharedLayout& layout, int k_axis, SourceLocation where = {});

}  // namespace tilewright::ir
