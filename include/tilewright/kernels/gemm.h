#pragma once

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// C = A B^T: A [m, k] row-major, B [n, k] row-major (B^T is K-major), C [m, n]; f32 sums.
struct Gemm {
  DType dtype = bf16;
  int block_m = 128, block_n = 256, block_k = 64;
};
Kernel gemm(const Gemm& gemm);

// The same for sm_90a: clusters of two CTAs share B's tiles by multicast; persistent.
Kernel gemm_sm90(const Gemm& gemm);

}  // namespace tilewright::kernels
