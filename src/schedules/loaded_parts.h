#pragma once

#include "ir/ir.h"

namespace tilewright::schedules {

// Tile form: a part (slice) of a loaded tile is loaded by itself, right behind the load. Where an
// integer of the launch decides where an axis of the load begins or ends, it is held against the
// tensor as a whole: a part of such an axis stays what it is.
void load_parts(ir::Kernel& kernel);

}  // namespace tilewright::schedules
