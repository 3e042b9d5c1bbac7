#pragma once

#include <cstdint>

#include "tilewright/kernels/gemm.h"
#include "tilewright/program.h"

// Matrix products over ranks, whose communication runs under the arithmetic. What a function
// refuses is a usage error at its caller's line, `where`.
namespace tilewright::kernels {

// How a rank's parts of the others' tiles get there, on sm_90a.
enum class PartsBy : std::uint8_t {
  tma,        // from shared memory into a slot for each rank
  copies,     // by copy engines, some of a rank's tiles together
  reduction,  // added by TMA where the sum is: between two ranks
};

// A product whose depth is divided among ranks. Each rank has its columns of the operands, A
// {ranks, m, k} and B {n, k}, and gets its own m rows of the sum: in rank r
//
//   C {m, n} = scale * (sum over the ranks s of A_s[r] B_s^T) + bias
//
// The parts of the sum, one of each rank, have the dtype `parts`. They are added in f32, in the
// order of the ranks, so that every run gives the same bits.
struct GemmReduceScatter {
  Gemm gemm;           // bf16 or f16; on sm_90a neither exchanged nor split
  int ranks = 2;       // 2 to 8
  DType parts = bf16;  // that of the operands, or f32
  bool scale = false;  // f32 {1}, which stands before C
  bool bias = false;   // f32 {n}, behind it
  // sm_90a: the CTAs of a cluster, gemm.share_a * ranks of them, have the same columns for all
  // ranks and share B's tiles: for few rows.
  bool share_ranks = false;
  // sm_90a: a tile has as many rows of each rank, whose parts all leave together: for few rows.
  // gemm.block_m is a multiple of 16 * ranks.
  bool join_ranks = false;
  // Without the two above, and CTAs that share tiles, other ways than TMA are there.
  PartsBy parts_by = PartsBy::tma;
};
// Its meaning: each rank reads what it needs of the others' operands. The program's tensors are A,
// B, scale, bias and C.
Program gemm_reduce_scatter(const GemmReduceScatter& operation, SourceLocation where = here());

// For sm_90a: one persistent kernel. A rank computes its part of others' tiles first and its own
// tiles last. Others' parts go into slots of their owner's memory by TMA, tile by tile, each behind
// a word that counts up with the runs and that a warp of its own writes. What finds no room in
// shared memory leaves beside the next tile's products. Where the owner computes the tile itself it
// adds what has come, which the warp that loads fetches behind the tile's operands. There are slots
// for two runs, since a rank may be a run ahead. n and k are multiples of 8.
//
// With PartsBy::copies the parts are stored here, and copy engines take them to their owner, in
// four blocks for each rank, while the next ones are computed. With PartsBy::reduction TMA adds
// them to a sum in their owner's memory, which is zero at first: between two ranks alone, since
// PTX's additions by TMA are for the threads of one GPU.
Program gemm_reduce_scatter_sm90(const GemmReduceScatter& operation, SourceLocation where = here());

// A product whose rows are divided among ranks. Each rank has its own rows A {m, k}, and B {n, k},
// and gets all rows of the product: in rank r
//
//   C {ranks, m, n}: C[s] = A_s B_r^T
struct AllGatherGemm {
  Gemm gemm;  // bf16 or f16; on sm_90a not split
  int ranks = 2;
  bool share_ranks = false;  // as above
  bool push = false;         // sm_90a: a warp of each CTA pushes the rows, not the copy engines
  // sm_90a: a tile has as many rows of each rank, which warps of all CTAs push: for few rows. k may
  // then be divided by the grid. gemm.block_m is a multiple of 16 * ranks.
  bool join_ranks = false;
};
// Its meaning: each rank reads the others' rows where they are. The program's tensors are A, B and
// C.
Program all_gather_gemm(const AllGatherGemm& operation, SourceLocation where = here());

// For sm_90a: one persistent kernel. A rank computes with its own rows first, then with those that
// come first; the warp that loads waits for their words, which count up with the runs. Copy engines
// push each rank's rows to the others, in blocks of rows and between two ranks the last of them in
// parts of k; or, if `push` is set, a warp of each CTA does, in parts of k, and into another half
// of the memory in every second run, so that no run waits for the one before. k and n are multiples
// of 8.
Program all_gather_gemm_sm90(const AllGatherGemm& operation, SourceLocation where = here());

// What the library compiles them in.
struct RankGemmVariant {
  GemmVariant tiles;
  bool share_ranks = false, push = false, join_ranks = false;
  PartsBy parts_by = PartsBy::tma;
  std::string name() const;
};
const std::vector<RankGemmVariant>& reduce_scatter_variants();
const std::vector<RankGemmVariant>& all_gather_variants();
GemmReduceScatter with_variant(GemmReduceScatter operation, const RankGemmVariant& variant);
AllGatherGemm with_variant(AllGatherGemm operation, const RankGemmVariant& variant);

}  // namespace tilewright::kernels
