#pragma once

#include <vector>

#include "tilewright/library.h"

namespace tilewright::kernels {

// Products of every layout, of e4m3, and what stands behind a product.
std::vector<LibraryKernel> gemm_entries();

}  // namespace tilewright::kernels
