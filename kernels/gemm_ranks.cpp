#include <string>

#include "kernels/gemm_ranks_check.h"
#include "kernels/gemm_sm90_plan.h"

namespace tilewright::kernels {
namespace {

void check_ranks(const Gemm& g, int ranks, const Caller& caller) {
  check_tiles(g, caller);
  if (ranks < 2 || ranks > 8) caller.refuse(std::to_string(ranks) + " ranks", "there are 2 to 8");
  if (g.a_along_m || g.b_along_n || g.bias || g.residual || g.keep_sums ||
      g.activation != Activation::none) {
    caller.refuse("a transposed operand, a bias, an activation or a residual",
                  "over ranks the product alone is computed: leave them out of its Gemm");
  }
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

void check_ranks_sm90(const Gemm& g, int ranks, bool share_ranks, const Caller& caller) {
  check_sm90(g, caller);
  if (share_ranks && g.share_b != ranks) {
    caller.refuse(std::to_string(g.share_b) + " CTAs share the tiles of B of " +
                      std::to_string(ranks) + " ranks",
                  "take a share_b of " + std::to_string(ranks) + ": one for each rank");
  }
  if (g.split == 1 && !g.grid_split) return;
  caller.refuse("k is divided among CTAs", "over ranks each tile is one CTA's: take split 1");
}

void check_joined_sm90(const Gemm& g, int ranks, const Caller& caller) {
  check_sm90(g, caller);
  if (g.exchanged || g.share_a > 1 || g.split > 1) {
    caller.refuse("tiles of all ranks' rows are exchanged, share A, or are split in a cluster",
                  "take exchanged = false, share_a = 1 and split = 1");
  }
  if (g.block_m % (16 * ranks) == 0) return;
  caller.refuse("block_m is " + std::to_string(g.block_m) + ", with as many rows of " +
                    std::to_string(ranks) + " ranks each",
                "take a multiple of " + std::to_string(16 * ranks) + ": a warp stores 16 rows");
}

namespace {

GemmVariant tiles(int block_m, int block_n, int block_k = 64) {
  std::string name = std::to_string(block_m) + "x" + std::to_string(block_n);
  if (block_k != 64) name += "x" + std::to_string(block_k);
  return {.name = name,
          .block_m = block_m,
          .block_n = block_n,
          .block_k = block_k,
          .warpgroups = block_m == 64 ? 1 : 2};
}

GemmVariant on_grid(GemmVariant variant) {
  variant.name += "_grid";
  variant.grid_split = true;
  return variant;
}

}  // namespace

std::string RankGemmVariant::name() const {
  std::string name = tiles.name;
  if (share_ranks) name += "_ranks";
  if (join_ranks) name += "_joined";
  if (push) name += "_push";
  switch (parts_by) {
    case PartsBy::tma:
      break;
    case PartsBy::copies:
      return name + "_copied";
    case PartsBy::reduction:
      return name + "_reduced";
  }
  return name;
}

const std::vector<RankGemmVariant>& reduce_scatter_variants() {
  static const std::vector<RankGemmVariant> variants = {
      {tiles(128, 256)},
      {tiles(64, 256)},
      {tiles(64, 128)},
      {.tiles = tiles(64, 128), .share_ranks = true},
      {.tiles = tiles(128, 64), .join_ranks = true},
      {.tiles = tiles(128, 256), .parts_by = PartsBy::copies},
      {.tiles = tiles(128, 256), .parts_by = PartsBy::reduction},
  };
  return variants;
}

const std::vector<RankGemmVariant>& all_gather_variants() {
  static const std::vector<RankGemmVariant> variants = {
      {tiles(128, 256)},
      {.tiles = tiles(128, 256), .push = true},
      {.tiles = tiles(128, 128), .push = true},
      {.tiles = tiles(64, 128), .push = true},
      {.tiles = tiles(64, 64, 128), .share_ranks = true, .push = true},
      {.tiles = on_grid(tiles(128, 88)), .join_ranks = true},
      {.tiles = on_grid(tiles(128, 128)), .join_ranks = true},
  };
  return variants;
}

GemmReduceScatter with_variant(GemmReduceScatter operation, const RankGemmVariant& variant) {
  operation.gemm = with_variant(operation.gemm, variant.tiles);
  operation.share_ranks = variant.share_ranks;
  operation.join_ranks = variant.join_ranks;
  operation.parts_by = variant.parts_by;
  if (variant.share_ranks) operation.gemm.share_b = operation.ranks;
  return operation;
}

AllGatherGemm with_variant(AllGatherGemm operation, const RankGemmVariant& variant) {
  operation.gemm = with_variant(operation.gemm, variant.tiles);
  operation.share_ranks = variant.share_ranks;
  operation.push = variant.push;
  operation.join_ranks = variant.join_ranks;
  if (variant.share_ranks) operation.gemm.share_b = operation.ranks;
  return operation;
}

}  // namespace tilewright::kernels
