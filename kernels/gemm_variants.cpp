#include "tilewright/kernels/gemm.h"

namespace tilewright::kernels {
namespace {

// One for each 64; two of 256, whose registers then hold two blocks of 64 each.
int warpgroups(int divided) { return divided == 256 ? 2 : divided / 64; }

GemmVariant variant(int block_m, int block_n, int block_k, std::string suffix = "", int cluster = 1,
                    GemmShared shared = GemmShared::b, int split = 1) {
  std::string name = std::to_string(block_m) + "x" + std::to_string(block_n);
  if (block_k != 64) name += "x" + std::to_string(block_k);
  return {name + suffix, block_m, block_n, block_k, warpgroups(block_m),
          false,         cluster, shared,  split};
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

// The same with operands exchanged, so that the rows are a multiple of 8.
GemmVariant exchanged(int block_m, int block_n, int cluster = 1, GemmShared shared = GemmShared::b,
                      int parts = 1, int block_k = 64) {
  std::string suffix = "_t";
  if (cluster > 1) suffix += (shared == GemmShared::a ? "_a" : "_b") + std::to_string(cluster);
  if (parts > 1) suffix += "_split" + std::to_string(parts);
  GemmVariant made = variant(block_m, block_n, block_k, std::move(suffix), cluster, shared, parts);
  made.warpgroups = warpgroups(block_n);
  made.exchanged = true;
  return made;
}

}  // namespace

const std::vector<GemmVariant>& gemm_variants() {
  constexpr GemmShared a = GemmShared::a, b = GemmShared::b;
  static const std::vector<GemmVariant> variants = {plain(128, 256),
                                                    plain(64, 64, 128),
                                                    plain(128, 160),
                                                    plain(128, 128),
                                                    plain(64, 128),
                                                    plain(128, 192),
                                                    plain(64, 96),
                                                    share(256, 160, a, 2),
                                                    share(128, 128, a, 4),
                                                    share(64, 128, a, 4),
                                                    share(64, 32, a, 8, 1, 128),
                                                    share(64, 96, b, 4, 1, 128),
                                                    share(256, 136, a, 2),
                                                    share(256, 128, a, 2),
                                                    share(64, 128, b, 4, 2),
                                                    share(64, 128, b, 2, 4),
                                                    exchanged(16, 64, 1, b, 1, 256),
                                                    exchanged(32, 64, 1, b, 1, 128),
                                                    exchanged(40, 64, 1, b, 1, 128),
                                                    exchanged(72, 64, 1, b, 1, 128),
                                                    exchanged(80, 128),
                                                    exchanged(104, 128),
                                                    exchanged(168, 128),
                                                    exchanged(200, 128),
                                                    exchanged(80, 192),
                                                    exchanged(120, 192),
                                                    exchanged(112, 256),
                                                    exchanged(128, 64, 4, a),
                                                    exchanged(192, 128, 4, a),
                                                    exchanged(104, 128, 4),
                                                    exchanged(152, 192, 2),
                                                    exchanged(120, 192, 4),
                                                    exchanged(96, 192, 4),
                                                    exchanged(176, 192, 2),
                                                    exchanged(72, 256, 4),
                                                    exchanged(144, 256, 2),
                                                    exchanged(152, 256, 2),
                                                    exchanged(160, 256, 2),
                                                    exchanged(104, 256, 4),
                                                    exchanged(32, 64, 1, b, 4, 128),
                                                    exchanged(48, 64, 1, b, 6, 128),
                                                    exchanged(72, 128, 1, b, 3),
                                                    exchanged(160, 64, 4, a, 2),
                                                    exchanged(64, 64, 2, a, 4, 128)};
  return variants;
}

Gemm with_variant(Gemm gemm, const GemmVariant& variant) {
  gemm.block_m = variant.block_m;
  gemm.block_n = variant.block_n;
  gemm.block_k = variant.block_k * 2 / size_of(gemm.dtype);
  gemm.warpgroups = variant.warpgroups;
  gemm.exchanged = variant.exchanged;
  gemm.cluster = variant.cluster;
  gemm.shared = variant.shared;
  gemm.split = variant.split;
  return gemm;
}

}  // namespace tilewright::kernels
