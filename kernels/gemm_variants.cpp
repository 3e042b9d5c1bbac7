#include "tilewright/kernels/gemm.h"

namespace tilewright::kernels {
namespace {

GemmVariant variant(int block_m, int block_n, int split = 1, int block_k = 64, int cluster = 1) {
  std::string name = std::to_string(block_m) + "x" + std::to_string(block_n);
  if (block_k != 64) name += "x" + std::to_string(block_k);
  if (split > 1) name += "_split" + std::to_string(split);
  if (cluster > 1) name += "_cluster" + std::to_string(cluster);
  return {std::move(name), block_m, block_n, block_k, cluster, split};
}

}  // namespace

const std::vector<GemmVariant>& gemm_variants() {
  static const std::vector<GemmVariant> variants = {
      variant(128, 256),          variant(128, 224),        variant(128, 192),
      variant(128, 160),          variant(128, 128),        variant(128, 96),
      variant(128, 64),           variant(128, 32),         variant(192, 192),
      variant(192, 160),          variant(192, 128),        variant(256, 128),
      variant(256, 96),           variant(64, 256),         variant(64, 192),
      variant(64, 128),           variant(64, 64),          variant(64, 32),

      variant(128, 192, 2),       variant(128, 128, 2),     variant(128, 64, 2),
      variant(64, 256, 2),        variant(64, 224, 2),      variant(64, 128, 2),
      variant(64, 64, 2),         variant(128, 128, 4),     variant(128, 64, 4),
      variant(64, 256, 4),        variant(64, 128, 4),      variant(64, 64, 4),
      variant(128, 128, 8),       variant(64, 256, 8),      variant(64, 128, 8),
      variant(64, 64, 1, 128),    variant(64, 128, 1, 128), variant(128, 128, 1, 128),
      variant(64, 128, 2, 128),   variant(64, 128, 4, 128), variant(128, 128, 4, 128),
      variant(128, 256, 1, 64, 2)};
  return variants;
}

Gemm with_variant(Gemm gemm, const GemmVariant& variant) {
  gemm.block_m = variant.block_m;
  gemm.block_n = variant.block_n;
  gemm.block_k = variant.block_k;
  gemm.cluster = variant.cluster;
  gemm.split = variant.split;
  return gemm;
}

}  // namespace tilewright::kernels
