#include "tilewright/kernels/gemm.h"

namespace tilewright::kernels {
namespace {

GemmVariant variant(int block_m, int block_n, int block_k, std::string suffix = "", int cluster = 1,
                    GemmShared shared = GemmShared::b, int split = 1) {
  std::string name = std::to_string(block_m) + "x" + std::to_string(block_n);
  if (block_k != 64) name += "x" + std::to_string(block_k);
  // A warpgroup for each 64 rows; two of 256, whose registers then hold two blocks of 64 each.
  const int warpgroups = block_m == 256 ? 2 : block_m / 64;
  return {name + suffix, block_m, block_n, block_k, warpgroups, cluster, shared, split};
}

GemmVariant plain(int block_m, int block_n, int block_k = 64) {
  return variant(block_m, block_n, block_k);
}
// CTAs that share A's tiles, or B's.
GemmVariant share(int block_m, int block_n, GemmShared shared, int cluster) {
  return variant(block_m, block_n, 64,
                 (shared == GemmShared::a ? "_a" : "_b") + std::to_string(cluster), cluster,
                 shared);
}
GemmVariant split(int block_m, int block_n, int parts, int block_k = 64) {
  return variant(block_m, block_n, block_k, "_split" + std::to_string(parts), 1, GemmShared::b,
                 parts);
}

}  // namespace

const std::vector<GemmVariant>& gemm_variants() {
  constexpr GemmShared a = GemmShared::a, b = GemmShared::b;
  static const std::vector<GemmVariant> variants = {
      plain(128, 256),       plain(128, 192),       plain(128, 160),       plain(128, 128),
      plain(128, 96),        plain(128, 64),        plain(256, 192),       plain(192, 192),
      plain(64, 192),        plain(64, 160),        plain(64, 128),        plain(64, 112),
      plain(64, 96),         plain(64, 64),         plain(64, 96, 128),    plain(64, 64, 128),
      plain(64, 32, 128),    share(128, 256, b, 2), share(128, 224, b, 2), share(192, 160, b, 2),
      share(192, 176, a, 2), share(192, 128, a, 2), share(256, 160, a, 2), share(256, 176, a, 2),
      share(64, 256, b, 4),  share(128, 128, a, 4), share(128, 96, a, 4),  share(64, 128, a, 4),
      share(64, 64, a, 4),   split(64, 128, 2),     split(64, 96, 3),      split(128, 128, 4),
      split(64, 64, 4, 128), split(64, 96, 6)};
  return variants;
}

Gemm with_variant(Gemm gemm, const GemmVariant& variant) {
  gemm.block_m = variant.block_m;
  gemm.block_n = variant.block_n;
  gemm.block_k = variant.block_k * 2 / size_of(gemm.dtype);
  gemm.warpgroups = variant.warpgroups;
  gemm.cluster = variant.cluster;
  gemm.shared = variant.shared;
  gemm.split = variant.split;
  return gemm;
}

}  // namespace tilewright::kernels
