#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// A copy for products of a pair of CTAs that loads nothing for both CTAs, whatever is launched: an
// error at its line. So it is where a cluster has several pairs, and their halves are numbered by
// the cluster's ranks.
void check_pair_loads(ir::Kernel& kernel);

}  // namespace tilewright::passes
