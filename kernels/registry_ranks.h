#pragma once

#include <vector>

#include "tilewright/library.h"

// The entries of operations over ranks.
namespace tilewright::kernels {

KernelOption ranks_option();
LibraryKernel gemm_reduce_scatter_entry();
LibraryKernel all_gather_gemm_entry();
// all_to_all and its way back, of sequences of one length, and packed.
std::vector<LibraryKernel> exchange_entries();
LibraryKernel all_gather_entry();
LibraryKernel reduce_scatter_entry();
LibraryKernel all_reduce_entry();
LibraryKernel broadcast_entry();
// all_gather, reduce_scatter and all_to_all of vectors over nodes.
std::vector<LibraryKernel> node_entries();
LibraryKernel sequence_parallel_attention_entry();
LibraryKernel sequence_parallel_varlen_attention_entry();
LibraryKernel sequence_parallel_attention_backward_entry();
LibraryKernel sequence_parallel_varlen_attention_backward_entry();
// The same four in a ring.
std::vector<LibraryKernel> ring_entries();

}  // namespace tilewright::kernels
