#pragma once

#include <string>

#include "ir/ir.h"
#include "tilewright/target.h"

// What both levels ask of the maps that authors declare.
namespace tilewright {

// Of a map of fewer warps than share the tile: the others hold the same.
ir::RegisterLayout for_warps(ir::RegisterLayout layout, std::int64_t warps);

// Raises where a thread would hold more than it has registers for.
void check_registers(const ir::RegisterLayout& layout, DType dtype, const TargetLimits& limits,
                     const std::string& what, SourceLocation where);

}  // namespace tilewright
