#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Whether the operation is a conversion that moves nothing, where layouts are assigned: its operand
// lies as its result does.
bool moves_nothing(const ir::Kernel& kernel, const ir::Operation& operation);
// Drops these, or of them only those whose layout nobody has chosen: what lies as they do would
// else no longer have to.
void drop_conversions(ir::Kernel& kernel, bool chosen_too);

}  // namespace tilewright::passes
