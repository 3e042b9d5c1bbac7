#pragma once

#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// Attention whose keys and values lie in pages of `page` slots, as servers keep them. block_q,
// block_k, l2_bytes and in_pairs are not asked.
struct PagedAttention : Attention {
  int page = 16;
  // K and V are f8e4m3, and stand for what they are times a scale: what kv_append stores in a cache
  // of f8e4m3.
  bool quantised = false;
  int scales = 1;  // of K, and as many of V: one for all heads, or kv_heads of them
  // Of multi-head latent attention: a key's first dim_v elements are its value too. There is one
  // head of keys, and no V.
  bool latent = false;
  // The table is in two vectors: the pages of all sequences, one behind the other, and where those
  // of each begin.
  bool csr = false;
  // Parts have so many keys, a multiple of 64, whatever else is in the batch: what a sequence gets
  // then depends on nothing but itself. 0: keys are divided so that they fill the GPU.
  int fixed_split_size = 0;
  // The plan is given: it was made beforehand, by attention_paged_plan, for several layers.
  bool planned = false;
};

// Key j of sequence b lies in slot j % page of page block_table[b][j / page]. Pages come in any
// order, and sequences may share them. Where the table has -1 there is no page, and its keys are
// hidden; any other number outside of the pages is a fault. A sequence has lengths[b] keys, its
// last queries' own among them, and its queries are packed: cu_seqlens_q[b] .. cu_seqlens_q[b + 1]
// - 1. One query a sequence is decoding, several are a chunk of a prompt or of guessed tokens. Of a
// causal mask, the last query sees the last key. What no sequence uses is never read: slots behind
// a length, pages, rows of the table behind its last page, queries of no sequence. A query that
// sees nothing has 0 and -inf.
//
// A program of two kernels, since the keys are divided among the CTAs that the GPU has places for;
// sums follow in the order of the parts, so that two kinds of GPU, or two batches, may round
// differently, unless fixed_split_size is set. Pages of whole 16 slots go through products, others
// key by key.
// in   Q [queries, heads, dim], cu_seqlens_q i32 [batch + 1], lengths i32 [batch],
//      block_table i32 [batch, max_pages], K [pages, page, kv_heads, dim],
//      V [pages, page, kv_heads, dim_v]; a cache whose pages have head behind head, {pages,
//      kv_heads, page, dim} in memory, is given with strides that say so
// in   with csr, in place of block_table: indptr i32 [batch + 1], indices i32 [entries]; page
//      indices[indptr[b] + j / page] has key j of sequence b
// in   of latent attention, in place of K and V: KV [pages, page, dim]
// in   with f8e4m3: K_scale f32 [scales], V_scale f32 [scales]
// out  O [queries, heads, dim_v], LSE f32 [queries, heads] (natural logarithm)
// in   with sinks: sinks f32 [heads]
// in   with planned: plan i32 [batch + 1]
Program attention_paged(const PagedAttention& attention, SourceLocation where = here());

// How the keys of a batch are divided, computed on the GPU from its lengths, for attention with
// `planned` of any number of layers. Nobody waits for the host. Of `attention` heads, kv_heads,
// window, fixed_split_size and latent are asked. It stands for as long as cu_seqlens_q does: by a
// plan of other lengths attention is right too, in parts that are less alike, and with
// fixed_split_size depend on those lengths. A plan of other queries is a fault where it is read.
// in   cu_seqlens_q i32 [batch + 1], lengths i32 [batch]
// out  plan i32 [batch + 1]
Program attention_paged_plan(const PagedAttention& attention, int multiprocessors = 132,
                             SourceLocation where = here());

// Whether a tile's keys are taken as a whole, so that its sums are the output, or in parts: every
// tile's in as many, or each sequence's by its length, which a kernel before counts.
enum class KeyParts : std::uint8_t { one, several, planned };
// The same for sm_90a, where memory is to give the pages as fast as it can: two warps of a CTA load
// and two warpgroups compute, each pair on a ring of its own. dim and dim_v are 64 or 128, the
// dtype is f16 or bf16, and pages have whole 8 slots.
Program attention_paged_sm90(const PagedAttention& attention, KeyParts keys,
                             SourceLocation where = here());
// The same for few queries, whose rows, the heads of a query that share keys, fill no 64: keys are
// the rows of products in their place, 8 heads or more their columns.
Program attention_paged_keys_sm90(const PagedAttention& attention, KeyParts keys,
                                  SourceLocation where = here());
// The same of latent keys, 576 of 512 at most: two warpgroups have the two halves of the output's
// columns. dim is a multiple of 64, dim_v one of 128.
Program attention_paged_mla_sm90(const PagedAttention& attention, KeyParts keys,
                                 SourceLocation where = here());
// The same for chunks of prompts, whose products count: the tiles of attention_varlen_forward_sm90.
// dim and dim_v are multiples of 16 up to 256.
Program attention_paged_chunks_sm90(const PagedAttention& attention, SourceLocation where = here());

}  // namespace tilewright::kernels
