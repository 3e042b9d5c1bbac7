#pragma once

#include "kernels/caller.h"
#include "tilewright/kernels/gemm_ranks.h"

// What operations over ranks do not take is a usage error at the caller's line.
namespace tilewright::kernels {

void check_reduce_scatter(const GemmReduceScatter& operation, const Caller& caller);
void check_all_gather(const AllGatherGemm& operation, const Caller& caller);
// Tiles for sm_90a, B's perhaps shared by the CTAs of all ranks.
void check_ranks_sm90(const Gemm& gemm, int ranks, bool share_ranks, const Caller& caller);
// Tiles that have rows of all ranks.
void check_joined_sm90(const Gemm& gemm, int ranks, const Caller& caller);

}  // namespace tilewright::kernels
