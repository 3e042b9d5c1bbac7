#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: what is loaded or computed of one axis and reshaped to a column as well as to a row is
// made twice, since the two lie differently in registers.
void separate_columns(ir::Kernel& kernel);

}  // namespace tilewright::passes
