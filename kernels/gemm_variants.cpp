#include "tilewright/kernels/gemm.h"

namespace tilewright::kernels {
namespace {

// One for each 64; two of 256, whose registers then hold two blocks of 64 each.
int warpgroups_for(int divided) { return divided == 256 ? 2 : divided / 64; }

// Which CTAs of a cluster share tiles, and how many groups of them divide k.
struct Cluster {
  int share_a = 1, share_b = 1, split = 1;
  bool grid_split = false;
};
Cluster a(int ctas, int split = 1) { return {ctas, 1, split}; }
Cluster b(int ctas, int split = 1) { return {1, ctas, split}; }
Cluster ab(int across, int below, int split = 1) { return {across, below, split}; }
Cluster grid(Cluster cluster = {}) {
  cluster.grid_split = true;
  return cluster;
}
Cluster parts(int split) { return {1, 1, split}; }

GemmVariant variant(int block_m, int block_n, const Cluster& cluster, int block_k, bool exchanged) {
  std::string name = std::to_string(block_m) + "x" + std::to_string(block_n);
  const auto add = [&](const std::string& what, int count, int unless) {
    if (count != unless) name += what + std::to_string(count);
  };
  add("x", block_k, 64);
  if (exchanged) name += "_t";
  add("_a", cluster.share_a, 1);
  add("_b", cluster.share_b, 1);
  add("_split", cluster.split, 1);
  if (cluster.grid_split) name += "_grid";
  return {std::move(name),
          block_m,
          block_n,
          block_k,
          warpgroups_for(exchanged ? block_n : block_m),
          exchanged,
          cluster.share_a,
          cluster.share_b,
          cluster.split,
          cluster.grid_split};
}

GemmVariant plain(int block_m, int block_n, const Cluster& cluster = {}, int block_k = 64) {
  return variant(block_m, block_n, cluster, block_k, false);
}

// The same with operands exchanged, so that the rows are a multiple of 8.
GemmVariant exchanged(int block_m, int block_n, const Cluster& cluster = {}, int block_k = 64) {
  return variant(block_m, block_n, cluster, block_k, true);
}

}  // namespace

const std::vector<GemmVariant>& gemm_variants() {
  static const std::vector<GemmVariant> variants = {
      plain(128, 256),
      plain(64, 48, {}, 128),
      plain(64, 64, {}, 128),
      plain(64, 96),
      plain(128, 88),
      plain(128, 112),
      plain(128, 128),
      plain(128, 160),
      plain(192, 176),
      plain(64, 32, a(8), 128),
      plain(64, 64, a(8), 128),
      plain(64, 96, b(4), 128),
      plain(64, 128, b(4)),
      plain(64, 128, a(4)),
      plain(128, 96, b(4)),
      plain(128, 128, a(4)),
      plain(128, 144, b(2)),
      plain(128, 208, b(2)),
      plain(256, 144, a(2)),
      plain(256, 160, a(2)),
      plain(64, 80, ab(4, 2), 128),
      plain(128, 80, ab(4, 2)),
      plain(128, 96, ab(2, 4)),
      plain(128, 160, ab(2, 2)),
      plain(128, 192, ab(2, 2)),
      plain(192, 160, ab(2, 2)),
      plain(256, 144, ab(2, 2)),
      plain(64, 64, ab(2, 2, 4), 128),
      plain(64, 64, a(4, 4), 128),
      plain(64, 96, b(4, 4), 128),
      plain(64, 96, ab(2, 2, 4)),
      plain(64, 128, b(2, 4)),
      plain(64, 128, b(4, 2)),
      plain(64, 160, b(4, 4)),
      plain(128, 96, b(2, 4)),
      plain(64, 64, grid(), 128),
      plain(64, 104, grid(), 128),
      plain(128, 88, grid()),
      plain(192, 176, grid()),
      plain(64, 128, grid(b(4))),
      plain(128, 144, grid(b(2))),
      plain(128, 192, grid(a(2))),
      plain(128, 208, grid(b(2))),
      plain(192, 104, grid(a(4))),
      plain(256, 144, grid(a(2))),
      plain(256, 160, grid(a(2))),
      plain(256, 168, grid(a(2))),
      plain(64, 64, grid(ab(4, 2)), 128),
      plain(128, 96, grid(ab(2, 4))),
      plain(128, 160, grid(ab(2, 2))),
      plain(128, 208, grid(ab(2, 2))),
      plain(192, 160, grid(ab(2, 2))),
      exchanged(16, 64, {}, 256),
      exchanged(24, 64, {}, 128),
      exchanged(48, 64, {}, 128),
      exchanged(72, 64, {}, 128),
      exchanged(80, 128),
      exchanged(80, 192),
      exchanged(104, 128),
      exchanged(120, 192),
      exchanged(136, 192),
      exchanged(168, 192),
      exchanged(96, 192, b(4)),
      exchanged(128, 64, a(4)),
      exchanged(144, 256, b(2)),
      exchanged(152, 192, b(2)),
      exchanged(160, 256, b(2)),
      exchanged(168, 256, b(2)),
      exchanged(192, 128, a(4)),
      exchanged(80, 64, ab(2, 4), 128),
      exchanged(96, 128, ab(2, 4)),
      exchanged(112, 128, ab(2, 2)),
      exchanged(128, 128, ab(4, 2)),
      exchanged(144, 128, ab(2, 2)),
      exchanged(176, 128, ab(2, 2)),
      exchanged(224, 128, ab(2, 4)),
      exchanged(48, 64, parts(6), 128),
      exchanged(64, 64, parts(8), 128),
      exchanged(160, 64, a(4, 2)),
      exchanged(32, 128, grid(), 128),
      exchanged(72, 64, grid(), 128),
      exchanged(96, 64, grid(a(4)), 128),
      exchanged(96, 128, grid(a(4))),
      exchanged(104, 192, grid(b(2))),
      exchanged(136, 128, grid(b(4))),
      exchanged(144, 128, grid(a(2))),
      exchanged(152, 256, grid(b(2))),
      exchanged(160, 256, grid(b(2))),
      exchanged(208, 128, grid(a(2))),
      exchanged(48, 64, grid(ab(2, 4)), 128),
      exchanged(80, 128, grid(ab(2, 2))),
      exchanged(96, 64, grid(ab(4, 2)), 128),
      exchanged(96, 128, grid(ab(2, 4))),
      exchanged(128, 128, grid(ab(4, 2))),
      exchanged(144, 192, grid(ab(2, 2))),
      exchanged(160, 128, grid(ab(4, 2))),
  };
  return variants;
}

// What CTAs load along memory comes in whole panels of 64 elements. Activations take registers: of
// exchanged and wider tiles the sums would leave too few.
const std::vector<GemmVariant>& gemm_linear_variants() {
  static const std::vector<GemmVariant> variants = {
      plain(128, 256, b(2)),
      plain(128, 256, grid()),
      plain(128, 128, grid()),
      plain(64, 128, grid()),
  };
  return variants;
}

Gemm with_variant(Gemm gemm, const GemmVariant& variant) {
  gemm.block_m = variant.block_m;
  gemm.block_n = variant.block_n;
  gemm.block_k = variant.block_k * 2 / size_of(gemm.dtype);
  gemm.warpgroups = variant.warpgroups;
  gemm.exchanged = variant.exchanged;
  gemm.share_a = variant.share_a;
  gemm.share_b = variant.share_b;
  gemm.split = variant.split;
  gemm.grid_split = variant.grid_split;
  return gemm;
}

}  // namespace tilewright::kernels
