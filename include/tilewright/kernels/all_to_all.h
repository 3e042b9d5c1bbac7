#pragma once

#include "tilewright/program.h"

// What ranks exchange so that each has all tokens of its own heads, and back. Nothing is computed:
// results have the bits of what came in. What a function refuses is a usage error at its caller's
// line, `where`.
namespace tilewright::kernels {

// Sequence-parallel attention: every rank has its own tokens of all heads, and needs all tokens of
// its own heads. Rank r takes heads / ranks heads of Q from head r * heads / ranks on, and those of
// K and V that they attend to: kv_heads / ranks of them, or one where there are fewer KV heads than
// ranks, which several ranks then have.
struct AllToAll {
  DType dtype = bf16;
  int ranks = 2;             // 2 to 8
  int heads = 8;             // of Q, in all ranks: a multiple of ranks
  int kv_heads = 8;          // of K and V: divides heads, and is a multiple or a divisor of ranks
  int dim = 64, dim_v = 64;  // of Q and K, and of V; for sm_90a rows of whole 16 bytes

  int own_heads() const { return heads / ranks; }
  int own_kv_heads() const { return kv_heads < ranks ? 1 : kv_heads / ranks; }
  // Sequences of different lengths, packed, each of them divided among the ranks. Q and K have
  // lengths of their own: i32 cu_seqlens_q and cu_seqlens_k {ranks, batch + 1}, alike in all ranks,
  // say where the sequences' parts begin among the tokens of each rank. In the result sequence b
  // begins at the sum over the ranks of cu_seqlens[b], and has the ranks' parts in their order.
  bool packed = false;
};

// In each rank
//
//   Q {batch, queries, heads, dim}      -> Q_all {batch, ranks * queries, own_heads, dim}
//   K {batch, keys, kv_heads, dim}      -> K_all {batch, ranks * keys, own_kv_heads, dim}
//   V {batch, keys, kv_heads, dim_v}    -> V_all {batch, ranks * keys, own_kv_heads, dim_v}
//
// with the tokens in the order of the ranks; packed without the axis batch. The program's tensors
// are Q, K, V, packed cu_seqlens_q and cu_seqlens_k, then Q_all, K_all and V_all. Its meaning: each
// rank reads what it needs of the others' tensors.
Program all_to_all(const AllToAll& exchange, SourceLocation where = here());

// For sm_90a: one persistent kernel. Each CTA loads tiles of some tokens of some heads and stores
// them where they belong, by TMA, in turn those of each rank and its own. A rank writes into
// another one's results only when that has begun the run too, and ends when all has arrived.
Program all_to_all_sm90(const AllToAll& exchange, SourceLocation where = here());

// By copies of the copy engines, which leave the multiprocessors to others. Not packed: the host
// does not know the lengths.
Program all_to_all_copied(const AllToAll& exchange, SourceLocation where = here());

// The same behind the projection that makes Q, K and V. Each rank has its own tokens, X {batch,
// tokens, k}, and weights W {(heads + 2 kv_heads) dim, k}, of whose rows those of Q come first,
// then those of K, then those of V; with `bias` a number for each of them. X W^T + bias goes to the
// ranks of its heads: in each rank
//
//   X, W, bias -> Q_all {batch, ranks * tokens, own_heads, dim}, K_all, V_all of own_kv_heads
//
// as all_to_all gives them for Q = K = V of these tokens. Of packed sequences X is {tokens, k}, and
// cu_seqlens {ranks, batch + 1} stands before the results. dim_v is dim.
struct ProjectionAllToAll {
  AllToAll heads;
  bool bias = false;  // of heads.dtype
};
// Its meaning: each rank makes what it needs of the others' tokens, with their weights.
Program projection_all_to_all(const ProjectionAllToAll& operation, SourceLocation where = here());
// For sm_90a: the persistent kernel of gemm, whose warps store each head's part of a tile straight
// into the results of the rank that has the head, or of all that have it, by TMA. A rank writes
// there only when that has begun the run too, and ends when all has arrived. bf16 or f16; k a
// multiple of 8, dim at most 256, in rows of whole 16 bytes.
Program projection_all_to_all_sm90(const ProjectionAllToAll& operation,
                                   SourceLocation where = here());

// The way back, of what attention has made of Q: in each rank
//
//   O_all {batch, ranks * queries, own_heads, dim_v} -> O {batch, queries, heads, dim_v}
//
// The program's tensors are O_all, packed cu_seqlens_q, and O. The heads of K and dim are not asked
// for.
Program all_to_all_back(const AllToAll& exchange, SourceLocation where = here());
Program all_to_all_back_sm90(const AllToAll& exchange, SourceLocation where = here());
Program all_to_all_back_copied(const AllToAll& exchange, SourceLocation where = here());

}  // namespace tilewright::kernels
