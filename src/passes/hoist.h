#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Moves pure operations out of loops that do not change what they read: all of them in the tile
// form, scalars only once tiles are registers. Loads of inputs that the kernel never writes move
// too.
void hoist(ir::Kernel& kernel);

}  // namespace tilewright::passes
