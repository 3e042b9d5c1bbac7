#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// Of a thread of a warpgroup that has 64 rows of each tile of a product's rows.
std::int64_t tile_registers(const ir::Kernel& kernel, const ir::Type& type);
// How many of a thread's registers are left for tiles, where the results of products have so many
// rows.
std::int64_t registers_for_tiles(const ir::Kernel& kernel, std::int64_t rows);
// Whether a thread has registers for the rows of numbers that the block loads, beside the results
// of its products: before these begin. `begin`: of those what sums begin with, which takes no
// others.
bool rows_fit(const ir::Kernel& kernel, const ir::Block& block,
              const std::vector<ir::ValueId>& begin);

}  // namespace tilewright::analysis
