#pragma once

#include "tilewright/library.h"

// The entries of operations over ranks.
namespace tilewright::kernels {

KernelOption ranks_option();
LibraryKernel gemm_reduce_scatter_entry();
LibraryKernel all_gather_gemm_entry();
LibraryKernel sequence_parallel_attention_entry();
LibraryKernel sequence_parallel_varlen_attention_entry();

}  // namespace tilewright::kernels
