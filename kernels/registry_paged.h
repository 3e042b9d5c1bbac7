#pragma once

#include <vector>

#include "tilewright/library.h"

namespace tilewright::kernels {

// attention_paged, attention_paged_fp8 and attention_paged_mla.
std::vector<LibraryKernel> paged_entries();

}  // namespace tilewright::kernels
