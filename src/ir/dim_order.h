#pragma once

#include "tilewright/dim.h"

namespace tilewright::ir {

// Whether `a` is never less than `b`, as sums of the same terms and constants show: n + 1 and n.
bool never_less(const Dim& a, const Dim& b);

}  // namespace tilewright::ir
