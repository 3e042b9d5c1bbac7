#pragma once

#include "tilewright/kernels/attention.h"
#include "tilewright/program.h"
#include "tilewright/shards.h"

// Attention over ranks, whose communication runs under the arithmetic. What a function refuses is a
// usage error at its caller's line, `where`.
namespace tilewright::kernels {

// Attention of sequences whose rows are divided among ranks. Each rank has its shard of the
// queries, Q {batch, queries, heads, dim}, and of the keys, K {batch, keys, kv_heads, dim} and V,
// and gets its shard of O and of LSE: rows of what attention_forward gives for the whole tensors,
// which `unshard` makes of all ranks'. Shards are as long in every rank; those of queries and of
// keys may differ. Row i of all queries sees keys up to i + (all keys) - (all queries).
struct SequenceParallelAttention {
  Attention attention;  // not in pairs
  int ranks = 2;        // 2 to 8
  Shards shards = Shards::contiguous;
};
// Its meaning: each rank reads the others' keys where they are. The program's tensors are those of
// attention_forward.
Program sequence_parallel_attention(const SequenceParallelAttention& operation,
                                    SourceLocation where = here());

// The same for sequences of different lengths, packed one behind the other as
// attention_varlen_forward takes them. Ranks divide the packed axes, wherever sequences begin: Q
// {queries, heads, dim} are a rank's rows of all of them, and cu_seqlens_q {batch + 1} are those of
// the whole, the same in every rank. Rows behind the last sequence belong to none, so that an axis
// of any length is divided evenly.
Program sequence_parallel_varlen_attention(const SequenceParallelAttention& operation,
                                           SourceLocation where = here());

// For sm_90a: the queries stay where they are. One kernel, that of attention_forward_sm90, begins
// with the keys that are the rank's own, while three more warps of each CTA push these to the ranks
// that see them. Words count what has come of each run of rows; the warp that loads waits for them
// before it loads one of its blocks for the first time. Of a causal mask no tile has rows of both
// halves of a zig-zag shard. Kernels of all ranks run at the same time, each on a GPU of its own.
// Scratch: all keys and values.
Program sequence_parallel_attention_sm90(const SequenceParallelAttention& operation,
                                         SourceLocation where = here());
Program sequence_parallel_varlen_attention_sm90(const SequenceParallelAttention& operation,
                                                SourceLocation where = here());

// The same, whose keys copy engines bring: the share of heads whose tiles run first before the
// rest, once all ranks have read what came in the run before.
Program sequence_parallel_attention_copied_sm90(const SequenceParallelAttention& operation,
                                                SourceLocation where = here());
Program sequence_parallel_varlen_attention_copied_sm90(const SequenceParallelAttention& operation,
                                                       SourceLocation where = here());

// sequence_parallel_attention by heads, for sm_90a: each rank gets all rows of its own heads, and
// sends what it makes of them back. Copy engines push Q, K and V of a group of heads that share
// keys after the other; attention to a group begins when all ranks' rows of it have come. Tiles of
// O go straight to their rows' owner by TMA. heads is a multiple of ranks, and kv_heads a multiple
// or a divisor. Scratch: Q, K and V of own heads.
Program sequence_parallel_attention_heads_sm90(const SequenceParallelAttention& operation,
                                               SourceLocation where = here());

// The same in a ring, of any heads, with memory for the keys of two more ranks alone: at each step
// a rank attends to the keys of one rank, while it hands those of the step before on to the next
// rank. What a step gives is joined with those before, in f32, and rounded once. Kernels are of the
// tile level.
Program ring_attention(const SequenceParallelAttention& operation, SourceLocation where = here());
// For sm_90a: a step is the kernel of attention_forward_sm90. Without a window; with a causal mask
// a rank has as many queries as keys.
Program ring_attention_sm90(const SequenceParallelAttention& operation,
                            SourceLocation where = here());
Program ring_varlen_attention(const SequenceParallelAttention& operation,
                              SourceLocation where = here());

// The gradients, from what the forward pass took and gave, and dO, each of them the shards of a
// rank: Q, K, V, O, LSE, dO, with `of_lse` the gradient of LSE; then dQ, dK and dV. Sinks stand
// behind V, the same in every rank, and each gets all of their gradients. By heads: all
// rows of a rank's own heads come to it, kernels of attention_backward make their gradients, and
// these go back. Where kv_heads is no multiple of ranks they are made in a ring. The same bits in
// every run.
Program sequence_parallel_attention_backward(const SequenceParallelAttention& operation,
                                             bool of_lse = false, SourceLocation where = here());
Program sequence_parallel_attention_backward_sm90(const SequenceParallelAttention& operation,
                                                  bool of_lse = false,
                                                  SourceLocation where = here());

// For sm_90a, by one kernel of all own heads: it waits for each head of keys to come, with the
// queries that see it, and sends gradients straight to their rows' owners. So nothing is lost
// between heads. dims up to 128, kv_heads a multiple of ranks, no sinks; queries of a rank a
// multiple of 128, and keys of 256.
Program sequence_parallel_attention_backward_heads_sm90(const SequenceParallelAttention& operation,
                                                        bool of_lse = false,
                                                        SourceLocation where = here());

// In a ring, of any heads: keys go round, and the sums of their gradients with them, in f32 and in
// an order that is always the same. Of packed sequences cu_seqlens_q and cu_seqlens_k stand behind
// V, and gradients of rows of no sequence stay as they were.
Program ring_attention_backward(const SequenceParallelAttention& operation, bool of_lse = false,
                                SourceLocation where = here());
// For sm_90a: a step is the kernel of the ordered attention_backward_sm90, of dims up to 128.
// Without a window; with a causal mask a rank has as many queries as keys.
Program ring_attention_backward_sm90(const SequenceParallelAttention& operation,
                                     bool of_lse = false, SourceLocation where = here());
Program ring_varlen_attention_backward(const SequenceParallelAttention& operation,
                                       bool of_lse = false, SourceLocation where = here());
// The gradients of sequence_parallel_varlen_attention: by heads, or in a ring where kv_heads is no
// multiple of ranks, as of sequences of one length. By heads those of rows of no sequence are 0.
Program sequence_parallel_varlen_attention_backward(const SequenceParallelAttention& operation,
                                                    bool of_lse = false,
                                                    SourceLocation where = here());
Program sequence_parallel_varlen_attention_backward_sm90(const SequenceParallelAttention& operation,
                                                         bool of_lse = false,
                                                         SourceLocation where = here());
// For sm_90a, by one kernel of all own heads, as of sequences of one length: wherever sequences
// begin, queries of a rank are a multiple of 128, and keys of 256.
Program sequence_parallel_varlen_attention_backward_heads_sm90(
    const SequenceParallelAttention& operation, bool of_lse = false, SourceLocation where = here());

}  // namespace tilewright::kernels
