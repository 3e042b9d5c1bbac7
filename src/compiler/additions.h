#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::compiler {

// A line of the author's that adds floating-point numbers to memory, which several CTAs may do.
// Unless they are ordered they come as they may, and sums differ in their last bits from launch to
// launch.
struct Addition {
  std::string tensor;
  std::string instruction;  // as wide as the layout allows: "red.global.add.v4.f32"
  int count = 0;            // instructions of the machine form at this line
  bool ordered = false;     // in the order of the grid's blocks: the same bits in every launch
  SourceLocation where;
};
// Of the machine form, in its order.
std::vector<Addition> additions_in(const ir::Kernel& machine);

}  // namespace tilewright::compiler
