#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/loaded_integers.h"
#include "ir/ir.h"

namespace tilewright::simulator {

// How one axis of an access is held against its tensor. Blocks may begin before a tensor and reach
// beyond it, as a halo does. Integers that the launch gives are believed less.
struct AxisCheck {
  std::size_t axis = 0;
  std::int64_t size = 0;  // of the block; 0: an index
  // The start is negative only where an integer is that the launch gives; and such integers alone
  // decide it.
  bool counted = false, placed = false;
  // The end is computed from such an integer, and cuts the block.
  bool loaded_end = false;
  ir::ValueId source = ir::kNoValue;  // that integer
};

// The checks of an access whose operands from `first` on are a start for each axis, and then, of
// tiles, a limit for each. An axis that needs none is left out.
std::vector<AxisCheck> axis_checks(const ir::Operation& access, std::size_t first,
                                   const analysis::LoadedIntegers& integers);

// What is wrong with the axis, such as "index 9 on axis 0 of X, which has 2"; empty: nothing.
// `limit` is where what exists of the block ends.
std::string describe_fault(const AxisCheck& check, std::int64_t start, std::int64_t limit,
                           std::int64_t extent, const std::string& tensor);

}  // namespace tilewright::simulator
