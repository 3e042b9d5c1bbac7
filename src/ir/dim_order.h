#pragma once

#include "tilewright/dim.h"

namespace tilewright::ir {

// Whether `a` is never less than `b`, as sums of terms and constants show, with what is known of
// the terms that remain: n + 1 and n; n + m, where m is at least 1, and n + 1.
bool never_less(const Dim& a, const Dim& b);

}  // namespace tilewright::ir
