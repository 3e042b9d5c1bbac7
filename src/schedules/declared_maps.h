#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace tilewright::schedules {

// Where the author declares how a tile lies in registers, in the kernel that a schedule records.
bool is_declared(const ir::Operation& operation);
bool declares_maps(const ir::Kernel& tile);
// Warps that share the tiles of a kernel without products: as many as its maps have, in whole
// warpgroups; 0 where it declares none.
std::int64_t declared_warps(const ir::Kernel& tile);

// How the result of such an operation lies in all warps of a CTA, which share its tiles; and in one
// of several warpgroups that have `local` of it. Raise at the operation's line for a map that gives
// them something else.
ir::RegisterLayout declared_for_cta(const ir::Kernel& tile, const ir::Operation& operation,
                                    std::int64_t warps);
ir::RegisterLayout declared_for_group(const ir::Kernel& tile, const ir::Operation& operation,
                                      const ir::Type& local, int groups);

}  // namespace tilewright::schedules
