#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Numerics: lets each lane keep its own part of a row sum for as long as the sum is only added to
// other sums and scaled, and completes it where it is read. A running sum then costs no shuffles
// in its loop. Where any_nearby() alone asks whether a sum exceeds a bound, the parts are asked.
// Returns how many sums are kept in parts.
int sink_partial_sums(ir::Kernel& kernel);

}  // namespace tilewright::passes
