#pragma once

#include <cstdint>

#include "tilewright/kernel.h"
#include "tilewright/program.h"

namespace tilewright::kernels {

// Scaled dot-product attention: O = softmax(Q K^T * scale) V for each batch and head. Lengths and
// the batch are symbolic. kv_heads divides heads: heads / kv_heads query heads share a K and V
// head. What a function below refuses is a usage error at its caller's line, `where`.
struct Attention {
  int heads = 8, kv_heads = 8;
  int dim = 64, dim_v = 64;
  bool causal = false;  // query i sees keys up to i + keys - queries
  int window = 0;       // causal: only the last `window` of those; 0 for all
  DType dtype = bf16;
  double scale = 0;    // 0: 1 / sqrt(dim)
  double softcap = 0;  // scaled scores s become softcap * tanh(s / softcap); 0: they stay
  bool sinks = false;  // each head has one more logit, with nothing behind it
  int block_q = 128, block_k = 128;  // rows of a tile, keys of a block
  // sm_90a: bytes of L2 for keys and values. Tiles of as many heads as fit follow each other, so
  // that these heads stay in L2. Measured: docs/log/2026-11-21-prototypes.md.
  int l2_bytes = 32 << 20;
  // sm_90a: two CTAs of a cluster take neighbouring tiles, and each loads half of the keys and
  // values that both read. For sequences of one length, without a window.
  bool in_pairs = false;
  // sm_90a: keys of the last tiles are divided among CTAs where tiles do not fill a round of all of
  // them. Up to dim 128, for sequences of one length, without a window or pairs.
  bool in_parts = false;
  // sm_90a: tiles of 128 rows, for where few of 192 would leave multiprocessors without work. For
  // sequences of one length.
  bool few_tiles = false;
  // sm_100a: of so many keys of a block, a multiple of 16, weights are exponentials by a polynomial
  // (exp2_polynomial), beside the unit for special functions. with_sm100_blocks chooses it.
  int polynomial_keys = 0;
};

// in   Q [batch, queries, heads, dim], K [batch, keys, kv_heads, dim],
//      V [batch, keys, kv_heads, dim_v]
// out  O [batch, queries, heads, dim_v], LSE f32 [batch, heads, queries] (natural logarithm)
// in   with sinks: sinks f32 [heads], the score of a key more that every query of the head sees and
//      whose value is 0: it joins the softmax's sum and LSE
Kernel attention_forward(const Attention& attention, SourceLocation where = here());

// attention_forward of Q, K and V in e4m3, each head of which has a scale: an element stands for
// what it is times that. `dtype` is O's. Weights are rounded to e4m3 before they meet V. There is
// no window, cap or sink. A program, of one kernel here.
// in   Q [batch, queries, heads, dim], K [batch, keys, kv_heads, dim],
//      V [batch, keys, kv_heads, dim_v], Q_scale f32 [heads], K_scale f32 [kv_heads],
//      V_scale f32 [kv_heads], all of them positive
// out  O [batch, queries, heads, dim_v], LSE f32 [batch, heads, queries]
Program attention_forward_fp8(const Attention& attention, SourceLocation where = here());
// The same for sm_90a, by products of e4m3. These want V's keys side by side, so that a kernel
// before it turns V over, in scratch of V's size. dim and dim_v are 64 or 128.
Program attention_forward_fp8_sm90(const Attention& attention, SourceLocation where = here());

// attention_forward for sequences of different lengths, packed one behind the other. Sequence b has
// the queries cu_seqlens_q[b] .. cu_seqlens_q[b + 1] - 1, and likewise its keys; both ascend,
// lengths may be 0, and rows of no sequence are neither read nor written. Of a causal mask, the
// lengths are the sequence's own: its last query sees its last key.
//
// in   Q [total_queries, heads, dim], K [total_keys, kv_heads, dim],
//      V [total_keys, kv_heads, dim_v], cu_seqlens_q i32 [batch + 1], cu_seqlens_k i32 [batch + 1]
// out  O [total_queries, heads, dim_v], LSE f32 [heads, total_queries]
// in   with sinks: sinks f32 [heads]
Kernel attention_varlen_forward(const Attention& attention, SourceLocation where = here());

// Attention of one query a sequence, which sees all keys: decoding. A program of two kernels, since
// the keys are divided among the CTAs that the GPU has places for; sums follow in the order of the
// parts, so that two kinds of GPU may round differently. At most 128 heads share keys; there is no
// window and there are no sinks.
// in   Q [batch, kv_heads, heads / kv_heads, dim], as {batch, heads, dim} lies in memory,
//      K [batch, keys, kv_heads, dim], V [batch, keys, kv_heads, dim_v]
// out  O [batch, kv_heads, heads / kv_heads, dim_v], LSE f32 [batch, kv_heads, heads / kv_heads]
Program attention_decode(const Attention& attention, SourceLocation where = here());

// How dK and dV of heads that share keys are summed, of which several CTAs have parts.
enum class KeySums : std::uint8_t {
  in_turn,  // into one place, in the order of the parts; with Order::any as they come
  apart,    // each part's sums are kept, and added behind: the most memory, and no turns
};
// The gradients of attention_forward, from those of O and, with `of_lse`, of LSE. A program of
// kernels without sums over CTAs: the same bits in every run. Keys that no query sees, and queries
// that see nothing, have gradients of 0.
// in   Q, K, V as attention_forward takes them; with sinks: sinks f32 [heads]
// in   O, LSE as it gave them, dO as O; with of_lse: dLSE f32 as LSE
// out  dQ, dK, dV as Q, K, V; with sinks: dsinks f32 [heads]
// Scratch: 8 bytes for each row of each head.
Program attention_backward(const Attention& attention, bool of_lse = false,
                           SourceLocation where = here());
// The same in five products instead of seven: a part of the keys has f32 sums of dQ of its own in
// memory, which a last kernel adds. For machines where a block's tiles lie in memory anyway. At
// most eight parts, of which each takes f32 of dQ's shape.
Program attention_backward_in_parts(const Attention& attention, bool of_lse = false,
                                    SourceLocation where = here());
// The same for sm_90a: two warpgroups have dK and dV of a block of keys in registers, and add dQ to
// f32 sums in memory. With Order::blocks they do so in the order of the keys, or its reverse: the
// same bits in every launch, which is cooperative. With Order::any its last bits differ from run to
// run. dim and dim_v are multiples of 16 up to 256, the dtype is f16 or bf16. Scratch: f32 of dQ's
// shape, and 8 bytes for each row of each head, both for queries in whole blocks
// (with_sm90_backward_blocks); in order, up to 8 bytes for each block. Where a dim is above 128,
// the sums have dim in whole 64.
// The query heads of a head of the keys are divided into parts where there are fewer blocks of keys
// than keep all at work; in order, up to dim 128 or with a mask, also where sequences are long.
// Their dK and dV are then summed as `keys` says. Scratch for it: f32 of the shapes of dK and dV,
// for keys in whole blocks, and up to 256 bytes for each block; apart, f32 of both for each part.
Program attention_backward_sm90(const Attention& attention, bool of_lse = false,
                                Order order = Order::blocks, KeySums keys = KeySums::in_turn,
                                SourceLocation where = here());
// The same of attention_varlen_forward; cu_seqlens_q and cu_seqlens_k follow V. Rows of no
// sequence are neither read nor written.
Program attention_varlen_backward(const Attention& attention, bool of_lse = false,
                                  SourceLocation where = here());
// attention_varlen_backward, by the means of attention_backward_sm90. The scratch has whole blocks
// of queries for each sequence, and one more for each at most.
Program attention_varlen_backward_sm90(const Attention& attention, bool of_lse = false,
                                       Order order = Order::blocks, KeySums keys = KeySums::in_turn,
                                       SourceLocation where = here());

// The same for sm_100a: dK and dV of a block of keys lie in tensor memory, beside S^T, P^T, dP^T
// and dS^T. dim and dim_v are multiples of 16 up to 128. With block_k 256 a pair of CTAs has a
// block of keys: each sends dS of half of the queries to the other one, and dQ is a product of
// both; dim and dim_v are then 64 or 128. Heads that share keys are divided as there. Scratch: f32
// of dQ's shape and 8 bytes for each row of each head, for queries in whole blocks; in order, up to
// 8 bytes for each block; of shared heads, what attention_backward_sm90 says. No such GPU has run
// it.
Program attention_backward_sm100(const Attention& attention, bool of_lse = false,
                                 Order order = Order::blocks, KeySums keys = KeySums::in_turn,
                                 SourceLocation where = here());
Program attention_varlen_backward_sm100(const Attention& attention, bool of_lse = false,
                                        Order order = Order::blocks,
                                        KeySums keys = KeySums::in_turn,
                                        SourceLocation where = here());

// attention_forward for sm_90a: a producer warp, and warpgroups of 64 rows each (block_q is 64, 128
// or 192) that overlap products with the softmax. dim and dim_v are multiples of 16 up to 256, the
// dtype is f16 or bf16. Raises where the blocks do not fit a CTA's shared memory.
Kernel attention_forward_sm90(const Attention& attention, SourceLocation where = here());
// attention_varlen_forward, by the same means. Sequences without rows and what pads the tiles cost
// nothing.
Kernel attention_varlen_forward_sm90(const Attention& attention, SourceLocation where = here());
// The same attention with the blocks that shared memory and registers have room for, by what
// measured best (docs/log/2026-11-21-attention-dims.md).
Attention with_sm90_blocks(Attention attention, SourceLocation where = here());
Attention with_sm90_varlen_blocks(Attention attention, SourceLocation where = here());
Attention with_sm90_fp8_blocks(Attention attention);
// The roles of attention_forward_sm100. Each has a warp that loads and one that multiplies.
enum class AttentionRoles : std::uint8_t {
  // Two tiles of 128 queries take turns: a warpgroup for each weighs its scores, one of them while
  // the other's are multiplied, and another warpgroup rescales and stores the sums. The weights lie
  // in tensor memory.
  ping_pong,
  // One tile, and one warpgroup that weighs, rescales and stores. The weights lie in tensor memory.
  one_tile,
  one_tile_shared,  // the same with the weights in shared memory
};
// attention_forward for sm_100a: scores, weights and sums lie in tensor memory, and a thread weighs
// a whole row. dim and dim_v are multiples of 16 up to 256, of two tiles dim_v up to 240; the dtype
// is f16 or bf16. block_q is 256, or 128 with one tile. Raises where the blocks do not fit. No such
// GPU has run it.
Kernel attention_forward_sm100(const Attention& attention,
                               AttentionRoles roles = AttentionRoles::ping_pong,
                               SourceLocation where = here());
// attention_varlen_forward, by the same means.
Kernel attention_varlen_forward_sm100(const Attention& attention,
                                      AttentionRoles roles = AttentionRoles::ping_pong,
                                      SourceLocation where = here());
// The same attention with the blocks that shared and tensor memory have room for.
Attention with_sm100_blocks(Attention attention, AttentionRoles roles = AttentionRoles::ping_pong,
                            SourceLocation where = here());
Attention with_sm100_varlen_blocks(Attention attention,
                                   AttentionRoles roles = AttentionRoles::ping_pong,
                                   SourceLocation where = here());
// The same for the tile level through the automatic schedule. Checks nothing: attention_forward
// does.
Attention with_tile_blocks(Attention attention);
Attention with_backward_blocks(Attention attention);
// The same for a processor, where tiles lie in its second-level cache.
Attention with_cpu_blocks(Attention attention);
Attention with_cpu_backward_blocks(Attention attention);
// The same for attention_backward_sm100, by one CTA for a block of keys and by pairs; and for
// attention_backward_sm90.
Attention with_sm100_backward_blocks(Attention attention);
Attention with_sm100_backward_pair_blocks(Attention attention);
Attention with_sm90_backward_blocks(Attention attention);

}  // namespace tilewright::kernels
