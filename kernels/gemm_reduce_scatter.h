#pragma once

#include <optional>

#include "kernels/gemm_ranks_check.h"
#include "tilewright/plan_case.h"
#include "tilewright/ranks.h"

// What the forms of gemm_reduce_scatter share.
namespace tilewright::kernels {

// What the sum over the ranks is scaled by, and what is added to it.
struct ScatterEpilogue {
  ScatterEpilogue(Kernel& kernel, const GemmReduceScatter& o, const Dim& n) {
    if (plan_case("a scale", o.scale)) scale.emplace(kernel.in("scale", f32, {1}));
    if (plan_case("a bias", o.bias)) bias.emplace(kernel.in("bias", f32, {n}));
  }
  Tile apply(Tile sum, const Block& cols) const {
    if (scale) sum = sum * load((*scale)(Dim(1).block(0, 1))).reshape({1, 1});
    if (bias) sum = sum + load((*bias)(cols)).reshape({1, cols.size()});
    return sum;
  }
  std::optional<Tensor> scale, bias;
};

// Each tile has a word for each rank that sends its part of it. Those of a group of CTAs go by one
// number (GemmSm90).
inline Dim words_of(const GemmReduceScatter& o, const Dim& m, const Dim& n) {
  const Gemm& g = o.gemm;
  const int together = o.share_ranks ? 1 : g.share_b;
  const int rows = o.join_ranks ? g.block_m / o.ranks : g.block_m * together;
  const Dim groups = ceil_div(m, rows) * ceil_div(n, g.block_n * g.share_a);
  return groups * (g.share_a * together * o.ranks);
}

// Few rows: tiles that have as many of each rank (gemm_reduce_scatter_joined.cpp).
Kernel joined_scatter_sm90(const GemmReduceScatter& o, const Caller& caller);

}  // namespace tilewright::kernels
