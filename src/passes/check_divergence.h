#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// The four warps of a warpgroup issue each product together. One inside a loop or condition that
// its warps may decide differently would hang or give wrong numbers: an error at the product's
// line.
void check_divergence(ir::Kernel& kernel);

}  // namespace tilewright::passes
