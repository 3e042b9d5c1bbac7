#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace tilewright::passes {

// Puts a conversion through shared memory wherever tiles would have to lie in two register layouts
// at once, and in place of what registers alone cannot do: parts that begin inside of what a lane
// holds, reshapes that tear it apart. How many; none where layouts agree. Before assign_layouts.
int convert_layouts(ir::Kernel& kernel);

// How a conversion whose layouts are known goes: `written` by all warps of its tile, then `read`
// from `offset` bytes behind. Both layouts name rows and columns of one warp group's `shared`.
struct Conversion {
  ir::SharedLayout shared;
  ir::RegisterLayout written, read;
  std::int64_t offset = 0;
  bool within_warps = false;  // no warp reads what another one has written
};
Conversion conversion(const ir::Kernel& kernel, const ir::Operation& convert);

}  // namespace tilewright::passes
