#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Lets each lane keep its own part of a row maximum that is asked whether any exceeds a bound:
// any(bound < maximum) holds of the parts when it holds of the whole. Other uses complete the
// maximum where they stand, so that one inside a condition costs its shuffles only there. The same
// for minima from below. Exact: maxima do not round. Returns how many are kept in parts.
int sink_partial_maxima(ir::Kernel& kernel);

}  // namespace tilewright::passes
