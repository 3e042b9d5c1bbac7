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
// CTAs that share A's tiles, or B's, and with `parts` that many groups of them that divide k.
GemmVariant share(int block_m, int block_n, GemmShared shared, int cluster, int parts = 1,
                  int block_k = 64) {
  std::string suffix = (shared == GemmShared::a ? "_a" : "_b") + std::to_string(cluster);
  if (parts > 1) suffix += "_split" + std::to_string(parts);
  return variant(block_m, block_n, block_k, std::move(suffix), cluster, shared, parts);
}
GemmVariant split(int block_m, int block_n, int parts, int block_k = 64) {
  return variant(block_m, block_n, block_k, "_split" + std::to_string(parts), 1, GemmShared::b,
                 parts);
}

}  // namespace

const std::vector<GemmVariant>& gemm_variants() {
  constexpr GemmShared a = GemmShared::a, b = GemmShared::b;
  static const std::vector<GemmVariant> variants = {plain(128, 256),
                                                    plain(256, 192),
                                                    plain(192, 192),
                                                    plain(192, 128),
                                                    plain(128, 160),
                                                    plain(128, 128),
                                                    plain(128, 112),
                                                    plain(128, 88),
                                                    plain(64, 192),
                                                    plain(64, 128),
                                                    plain(64, 64),
                                                    plain(64, 64, 128),
                                                    plain(64, 48, 128),
                                                    plain(64, 32, 128),
                                                    plain(64, 16, 128),
                                                    plain(64, 32, 256),
                                                    share(256, 168, a, 2),
                                                    share(256, 160, a, 2),
                                                    share(256, 144, a, 2),
                                                    share(192, 144, a, 2),
                                                    share(128, 256, b, 2),
                                                    share(128, 128, a, 4),
                                                    share(128, 112, a, 4),
                                                    share(128, 72, a, 4),
                                                    share(64, 256, b, 4),
                                                    share(64, 128, a, 4),
                                                    share(64, 64, a, 4),
                                                    share(128, 48, a, 4, 1, 128),
                                                    share(64, 96, b, 4, 1, 128),
                                                    share(64, 32, a, 8, 1, 128),
                                                    split(64, 128, 2),
                                                    split(64, 96, 3),
                                                    split(64, 96, 6),
                                                    split(64, 64, 4, 128),
                                                    share(128, 96, a, 4, 2),
                                                    share(128, 64, a, 2, 2),
                                                    share(64, 128, b, 4, 2),
                                                    share(64, 128, b, 2, 4),
                                                    share(64, 64, b, 2, 4),
                                                    share(64, 32, a, 2, 2, 128),
                                                    share(64, 32, a, 2, 4, 128)};
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
