#pragma once

#include "analysis/linear.h"
#include "ir/builder.h"

namespace tilewright::passes {

// Which rows of the tiles of a kernel of the tile form a warpgroup computes, if its products have
// more than one computes: begins the kernel with the operations that say it. None otherwise.
analysis::OwnRows own_rows(ir::Kernel& kernel);

// What the difference is, but for its part of the loop's index.
ir::ValueId without_index(ir::Builder& builder, const analysis::Linear& linear);

}  // namespace tilewright::passes
