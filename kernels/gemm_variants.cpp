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
GemmVariant pair(int block_m, int block_n, GemmShared shared) {
  return variant(block_m, block_n, 64, shared == GemmShared::a ? "_a2" : "_b2", 2, shared);
}
GemmVariant split(int block_m, int block_n, int parts, int block_k = 64) {
  return variant(block_m, block_n, block_k, "_split" + std::to_string(parts), 1, GemmShared::b,
                 parts);
}

}  // namespace

const std::vector<GemmVariant>& gemm_variants() {
  constexpr GemmShared a = GemmShared::a, b = GemmShared::b;
  static const std::vector<GemmVariant> variants = {
      plain(128, 256),    plain(128, 192),   plain(128, 160),   plain(128, 128),
      plain(128, 96),     plain(256, 192),   plain(192, 192),   plain(64, 256),
      plain(64, 192),     plain(64, 160),    plain(64, 128),    plain(64, 112),
      plain(64, 96),      plain(64, 64),     plain(64, 32),     plain(64, 64, 128),
      plain(64, 48, 128), pair(128, 256, b), pair(128, 224, b), pair(64, 128, a),
      pair(192, 192, a),  pair(192, 176, a), pair(192, 160, b), pair(192, 128, a),
      pair(256, 160, a),  pair(256, 176, a), pair(256, 192, a), split(64, 128, 2),
      split(128, 128, 2), split(64, 96, 3),  split(64, 192, 3), split(64, 64, 4, 128)};
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
