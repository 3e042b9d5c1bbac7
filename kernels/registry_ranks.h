#pragma once

#include "tilewright/library.h"

// The entries of operations over ranks.
namespace tilewright::kernels {

LibraryKernel gemm_reduce_scatter_entry();
LibraryKernel all_gather_gemm_entry();

}  // namespace tilewright::kernels
