#pragma once

#include "kernels/caller.h"
#include "tilewright/kernels/collectives.h"

// The kernels behind the collectives for sm_90a. Their tensors are X, Y, in those that sum the
// slots {2, ranks, part} into which others push, and words (rank_words.h).
namespace tilewright::kernels {

Kernel all_gather_kernel_sm90(const Collective& c, const Caller& caller);
Kernel reduce_scatter_kernel_sm90(const Collective& c, const Caller& caller);
Kernel all_reduce_kernel_sm90(const Collective& c, Shots shots, const Caller& caller);
Kernel broadcast_kernel_sm90(const Collective& c, int root, Shots shots, const Caller& caller);

void check_root(const Collective& c, int root, const Caller& caller);

// Elements of 16 bytes: what a vector has whole ones of.
int vector_unit(const Collective& c);
// How many elements each of `ranks` ranks has of a vector, the last one fewer.
Dim part_of_vector(const Collective& c, const Dim& count, int ranks);

}  // namespace tilewright::kernels
