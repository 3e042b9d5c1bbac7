#pragma once

#include "ir/ir.h"
#include "schedules/chosen.h"

namespace tilewright::schedules {

// From the tile to the scheduled form for kernels without products (softmax, normalisations,
// elementwise functions, reductions), in the explicit language: one CTA for each block of the grid,
// whose warps share every tile. Loads go straight to registers, 16 bytes a lane where they are
// contiguous; rows are spread over warps before columns are, and what crosses warps is reduced
// through shared memory. A kernel that does not fit is a usage error at the operation in the way.
Scheduled schedule_rowwise(const ir::Kernel& tile);

}  // namespace tilewright::schedules
