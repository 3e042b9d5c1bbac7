#pragma once

#include <map>
#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright::kernels {

// Sizes of tiles that no product takes are usage errors at the caller's line.
void check_tiles(const Gemm& g, const Caller& caller);
void check_sm90(const Gemm& g, const Caller& caller);

inline DType result_dtype(const Gemm& g) { return g.dtype == f8e4m3 ? bf16 : g.dtype; }

// What the warpgroups divide in multiples of 64, and what a product takes in multiples of 8: rows
// and columns of C, or columns and rows where the operands are exchanged.
inline int divided(const Gemm& g) { return g.exchanged ? g.block_n : g.block_m; }
inline int undivided(const Gemm& g) { return g.exchanged ? g.block_m : g.block_n; }

// How a CTA divides its shared memory.
struct SharedPlan {
  int stages = 0;
  std::vector<int> runs;  // of what is not divided, which are staged one after the other
  std::map<int, int>
      staging;  // tiles by the longest run that they take: two where they are used again
};

// Wide runs, which TMA stores best, unless they cost one of four stages, which hide the loads. The
// parts of a split are exchanged in runs of one width. What is stored has the dtype `staged`. So
// many bytes are for other things.
SharedPlan plan_shared(const Gemm& g, const Caller& caller, DType staged, int others = 0);

}  // namespace tilewright::kernels
