#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// The lanes of a warp go on each by itself, and some operations are one lane's: an arrival, a copy,
// a wait for a bulk group. Inserts a warp_sync before one lane acts on memory that all lanes have
// accessed, and before all lanes access memory behind what one lane wrote or waited for. A
// synchronisation that stands there already serves. For the machine form, behind whatever moves or
// removes operations.
void order_lanes(ir::Kernel& kernel);

}  // namespace tilewright::passes
