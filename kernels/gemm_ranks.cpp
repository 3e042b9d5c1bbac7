#include <string>

#include "kernels/gemm_ranks_check.h"
#include "kernels/gemm_sm90_plan.h"

namespace tilewright::kernels {
namespace {

void check_ranks(const Gemm& g, int ranks, const Caller& caller) {
  check_tiles(g, caller);
  if (ranks < 2 || ranks > 8) caller.refuse(std::to_string(ranks) + " ranks", "there are 2 to 8");
  if (g.dtype != f8e4m3) return;
  caller.refuse("operands of f8e4m3", "take bf16 or f16: scales of ranks are not one number");
}

}  // namespace

void check_reduce_scatter(const GemmReduceScatter& o, const Caller& caller) {
  check_ranks(o.gemm, o.ranks, caller);
  if (o.parts == f32 || o.parts == o.gemm.dtype) return;
  caller.refuse("parts of " + std::string(name_of(o.parts)) + " beside operands of " +
                    std::string(name_of(o.gemm.dtype)),
                "take parts of the operands' dtype, or f32");
}

void check_all_gather(const AllGatherGemm& o, const Caller& caller) {
  check_ranks(o.gemm, o.ranks, caller);
}

void check_ranks_sm90(const Gemm& g, const Caller& caller) {
  check_sm90(g, caller);
  if (g.split == 1 && !g.grid_split) return;
  caller.refuse("k is divided among CTAs", "over ranks each tile is one CTA's: take split 1");
}

const std::vector<GemmVariant>& rank_gemm_variants() {
  static const std::vector<GemmVariant> variants = {
      {.name = "128x256", .block_m = 128, .block_n = 256, .block_k = 64, .warpgroups = 2},
      {.name = "128x128", .block_m = 128, .block_n = 128, .block_k = 64, .warpgroups = 2},
      {.name = "64x128", .block_m = 64, .block_n = 128, .block_k = 64, .warpgroups = 1},
      {.name = "128x256_b2",
       .block_m = 128,
       .block_n = 256,
       .block_k = 64,
       .warpgroups = 2,
       .share_b = 2},
  };
  return variants;
}

}  // namespace tilewright::kernels
