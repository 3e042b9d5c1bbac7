#pragma once

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// C = A B^T: A [m, k] row-major, B [n, k] row-major (B^T is K-major), C [m, n]; f32 sums.
struct Gemm {
  DType dtype = bf16;
  int block_m = 128, block_n = 256, block_k = 64;
  int cluster = 1;  // sm_90a: CTAs that share B's tiles by multicast
};
Kernel gemm(const Gemm& gemm);

// The same for sm_90a: persistent, a producer warp and two warpgroups of 64 rows each. n and k are
// multiples of 8 (TMA takes rows of whole 16 bytes), block_m is 128.
Kernel gemm_sm90(const Gemm& gemm);

}  // namespace tilewright::kernels
