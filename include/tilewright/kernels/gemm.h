#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/kernel.h"
#include "tilewright/kernels/activation.h"

namespace tilewright::kernels {

// C = activation(A B^T + bias) + residual: A {m, k}, B {n, k}, C {m, n}, row-major, with f32 sums.
// With f8e4m3 C is bf16, and A B^T is multiplied by scale_a and scale_b, f32 {1} each. The
// tensors' order is A, B, the scales, bias {n}, residual {m, n}, C and Z. What a function below
// refuses is a usage error at its caller's line, `where`.
struct Gemm {
  DType dtype = bf16;  // of A and B, and of the others but for f8e4m3
  // A is {k, m}, B is {k, n}: they are contiguous along m and n. Not with f8e4m3.
  bool a_along_m = false, b_along_n = false;
  bool bias = false, residual = false;
  Activation activation = Activation::none;
  bool keep_sums = false;  // Z {m, n}: what the activation was given, for its gradient
  int block_m = 128, block_n = 256, block_k = 64;
  int warpgroups = 2;  // sm_90a: they divide block_m, exchanged block_n, in multiples of 64
  // sm_90a only: C^T = B A^T, whose products take B's rows in multiples of 64 and A's in multiples
  // of 8 up to 256. Else it is the other way round.
  bool exchanged = false;
  // sm_90a only: clusters of share_a * share_b * split CTAs.
  int share_a = 1;  // so many CTAs of a row of tiles share A's tiles by multicast
  int share_b = 1;  // so many CTAs of a column of tiles share B's
  int split = 1;    // so many CTAs divide k between them
  // sm_90a only: if the last wave of tiles does not fill the GPU, clusters that would idle take
  // parts of k of its tiles.
  bool grid_split = false;
};
Kernel gemm(const Gemm& gemm, SourceLocation where = here());

// The same for sm_90a: persistent, a producer warp and the warpgroups that multiply. Rows of each
// tensor are multiples of 16 bytes, as TMA takes them: n, and of A and B what they are contiguous
// along. block_n, exchanged block_m, is a multiple of 8 split up to 256. Where A is {k, m}, what
// each CTA loads of block_m is a multiple of 64, and so of block_n where B is {k, n}.
Kernel gemm_sm90(const Gemm& gemm, SourceLocation where = here());

// The same for sm_100a and sm_110a, whose sums are in tensor memory: a warp loads, another one
// multiplies, and a warpgroup stores. block_m is 128, of a pair of CTAs for each of the two;
// block_n is 64, 128 or 256. bf16, f16, f8e4m3; n, k as for gemm_sm90. No such GPU has run it.
enum class GemmRoles {
  one_tile,    // of each CTA
  persistent,  // the sums of a tile are stored while the next one is multiplied
  pairs,       // the same, by products of pairs of CTAs: each loads half of B's tile
  handed_out,  // as pairs, with tiles that clusters take over from those that have not started
};
Kernel gemm_sm100(const Gemm& gemm, GemmRoles roles = GemmRoles::persistent,
                  SourceLocation where = here());

// The tile shapes that the library compiles gemm_sm90 in.
struct GemmVariant {
  std::string name;  // "128x256", "64x128_split4", "152x256_t_b2", "64x128_a2_b4", "128x256_grid"
  int block_m, block_n;
  int block_k;  // of 16-bit elements: twice as many of 8 bits
  int warpgroups;
  bool exchanged = false;
  int share_a = 1, share_b = 1;
  int split = 1;
  bool grid_split = false;
};
const std::vector<GemmVariant>& gemm_variants();
// The variants for operands of any layout, and with registers left for what stands behind the sums.
const std::vector<GemmVariant>& gemm_linear_variants();
// Checks nothing: gemm_sm90 does.
Gemm with_variant(Gemm gemm, const GemmVariant& variant);

}  // namespace tilewright::kernels
