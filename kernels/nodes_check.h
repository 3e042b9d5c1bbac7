#pragma once

#include "kernels/caller.h"
#include "tilewright/kernels/nodes.h"

namespace tilewright::kernels {

void check_collective(const Collective& c, const Caller& caller);
void check_nodes(const NodeCollective& c, const Caller& caller);

}  // namespace tilewright::kernels
