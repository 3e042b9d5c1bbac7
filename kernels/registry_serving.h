#pragma once

#include <vector>

#include "tilewright/library.h"

namespace tilewright::kernels {

// kv_append, kv_append_fp8, kv_append_mla and merge_states.
std::vector<LibraryKernel> serving_entries();

}  // namespace tilewright::kernels
