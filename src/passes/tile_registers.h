#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace tilewright::passes {

// Of a thread of a warpgroup that has 64 rows of each tile of a product's rows.
std::int64_t tile_registers(const ir::Kernel& kernel, const ir::Type& type);
// How many of a thread's registers are left for tiles, where the results of products have so many
// rows.
std::int64_t registers_for_tiles(const ir::Kernel& kernel, std::int64_t rows);

}  // namespace tilewright::passes
