#pragma once

#include "kernels/caller.h"
#include "tilewright/kernels/kv_append.h"

namespace tilewright::kernels {

// Raises for what fits no cache.
void check_append(const KvAppend& a, const Caller& caller);

}  // namespace tilewright::kernels
