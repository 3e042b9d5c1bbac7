#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace tilewright::passes {

// How the warps that hold parts of a reduction tell each other: each writes its sums to shared
// memory, and all read those of all. Tiles {parts, elements}, for each warpgroup that has a part:
// one row for each warp along the reduced axis, the result's elements in row-major order.
struct WarpExchange {
  std::int64_t parts = 1, elements = 1;
  std::int64_t groups = 1;           // warpgroups that have a part of the axis each
  ir::RegisterLayout written, read;  // `read` holds a result's registers once for each part
};
// Of a `reduce` or `complete` whose layouts are known; nothing when no warp needs another's sums.
std::optional<WarpExchange> warp_exchange(const ir::Kernel& kernel, const ir::Operation& operation);

// Gives every reduction that crosses warps shared memory and a named barrier for each group of
// warps that shares its tile.
void share_reductions(ir::Kernel& kernel);

}  // namespace tilewright::passes
