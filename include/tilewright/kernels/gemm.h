#pragma once

#include <string>
#include <vector>

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// C = A B^T: A [m, k] row-major, B [n, k] row-major (B^T is K-major), C [m, n]; f32 sums.
struct Gemm {
  DType dtype = bf16;
  int block_m = 128, block_n = 256, block_k = 64;
  // sm_90a only, and at most one of the two above 1:
  int cluster = 1;  // CTAs with tiles below each other, which share B's by multicast
  int split = 1;    // CTAs of a cluster that divide k between them
};
Kernel gemm(const Gemm& gemm);

// The same for sm_90a: persistent, a producer warp and a warpgroup for each 64 rows of block_m,
// which is 64 to 256 and a multiple of 64. n and k are multiples of 8 (TMA takes rows of whole 16
// bytes). block_n is a multiple of 16 split up to 256.
Kernel gemm_sm90(const Gemm& gemm);

// The tile shapes that the library compiles gemm_sm90 in.
struct GemmVariant {
  std::string name;  // "128x256", "64x128_split4"
  int block_m, block_n, block_k;
  int cluster, split;
};
const std::vector<GemmVariant>& gemm_variants();
Gemm with_variant(Gemm gemm, const GemmVariant& variant);

}  // namespace tilewright::kernels
