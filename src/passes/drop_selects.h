#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: drops a select of a number where its value is that number already, wherever the
// condition is false: scores of keys that do not exist are hidden by the author's own mask, and
// their weights are 0 for it. Must come after materialise_extents, which asks for each reader.
void drop_selects(ir::Kernel& kernel);
// The same, and where the value is made of what loads find nothing for: sums of what is loaded. For
// targets on which a select is an instruction of its own for a whole tile.
void drop_selects_of_loads(ir::Kernel& kernel);

}  // namespace tilewright::passes
