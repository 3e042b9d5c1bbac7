#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// A tensor of which each step of a loop loads one block, whose place is a number that the step
// loads, such as a page's. The steps carry tiles: each goes on with what the one before has summed.
struct NumberedBlock {
  std::string tensor;
  SourceLocation loop, block, number;
};
// Of the tile form, in its order.
std::vector<NumberedBlock> numbered_blocks(const ir::Kernel& kernel);

}  // namespace tilewright::analysis
