#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: what does not exist of a tile becomes a select of the neutral value in front of each
// reduction, and of zero in front of each product that reads a computed tile along it; and a store
// ends where its tile does. From here on only loads and stores mind how much of a tile exists. Must
// come before peel_masks, which drops the selects again where a whole block exists.
void materialise_extents(ir::Kernel& kernel);

}  // namespace tilewright::passes
