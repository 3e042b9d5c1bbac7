#pragma once

#include <cstdint>
#include <vector>

#include "ir/descriptor.h"
#include "passes/lowering/role_code.h"
#include "passes/lowering/views.h"

namespace tilewright::passes {

// An operand of a product in shared memory, step by step along what is summed over.
struct OperandSide {
  ir::ValueId shared = 0, offset = 0;
  std::int64_t descriptor = 0, transposed = 0;
  std::vector<std::int64_t> steps;
  std::int64_t first = 0;  // of the steps, where the view begins
};

// What a family of products is told of a layout.
using DescribeOperand = ir::WgmmaOperand (*)(const ir::SharedLayout& layout, int k_axis,
                                             SourceLocation where);

// `k_axis`: the axis of the tile in memory that is summed over, of which one instruction takes
// `depth_bytes` of a row.
OperandSide operand_side(RoleCode& code, Views& views, const View& view, int k_axis,
                         std::int64_t depth_bytes, DescribeOperand describe,
                         const ir::Operation& o);

}  // namespace tilewright::passes
