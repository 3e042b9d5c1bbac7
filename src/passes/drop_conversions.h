#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Whether the operation is a conversion that moves nothing, where layouts are assigned: its operand
// lies as its result does.
bool moves_nothing(const ir::Kernel& kernel, const ir::Operation& operation);
// Whether each lane of its result has what the same lane of its operand has, in other registers:
// copies of registers, or of their halves, do it. Of bytes they do not.
bool stays_in_lanes(const ir::Kernel& kernel, const ir::Operation& operation);
// Drops the first ones, or of them only those whose layout nobody has chosen: what lies as
// they do would else no longer have to.
void drop_conversions(ir::Kernel& kernel, bool chosen_too);

}  // namespace tilewright::passes
