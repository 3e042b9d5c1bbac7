#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/host_tensor.h"
#include "tilewright/shards.h"

// The kernels' meaning in float64, written without the language.
namespace tilewright::kernels {

std::vector<double> numbers_of(const HostTensor& tensor);

struct AttentionSizes {
  std::int64_t batch, queries, keys, heads, kv_heads, dim, dim_v;
  bool causal;
  std::int64_t window;
  double scale;
  double softcap;  // 0: none
};
// The last input may be the heads' sinks {heads}. Q {batch, queries, heads, dim}, K {batch, keys,
// kv_heads, dim}, V {batch, keys, kv_heads, dim_v}: the output {batch, queries, heads, dim_v} and
// the natural logarithm of the sums {batch, heads, queries}. A row that sees nothing is 0, with
// -inf.
std::vector<std::vector<double>> attention_reference(const AttentionSizes& sizes,
                                                     const std::vector<HostTensor>& inputs);

// The same of sequences whose rows are divided among ranks: of each rank its rows of Q, K and V,
// and the sinks; its rows of the two outputs. `sizes` are those of a rank. Of
// packed sequences it has where they begin, too, as attention_varlen_reference takes it.
std::vector<std::vector<double>> sequence_parallel_attention_reference(
    const AttentionSizes& sizes, int ranks, Shards shards, const std::vector<HostTensor>& inputs,
    bool is_packed = false);

// The gradients of each rank's rows: of each rank its rows of Q, K, V, of packed sequences where
// they begin, with sinks these, and its rows of O, LSE, dO and perhaps dLSE; those of dQ, dK and
// dV, and all of the sinks'.
std::vector<std::vector<double>> sequence_parallel_attention_backward_reference(
    const AttentionSizes& sizes, int ranks, Shards shards, bool has_sinks,
    const std::vector<HostTensor>& inputs, bool is_packed = false);

// attention_reference of packed sequences: Q {queries, heads, dim}, K {keys, kv_heads, dim}, V
// {keys, kv_heads, dim_v} and the first rows of the sequences, {batch + 1} each; sums {heads,
// queries}. Rows of no sequence are 0.
std::vector<std::vector<double>> attention_varlen_reference(const AttentionSizes& sizes,
                                                            const std::vector<HostTensor>& inputs);

// The gradients of Q, K, V and, with sinks, of these, from Q, K, V, dO and, where they are given,
// dLSE, sinks and the O that a forward pass has rounded: empty tensors stand for none. `offsets`
// are the first rows of packed sequences, those of the queries and those of the keys; none:
// sequences of one length.
std::vector<std::vector<double>> attention_backward_reference(
    const AttentionSizes& sizes, const std::vector<HostTensor>& inputs,
    const std::vector<HostTensor>& offsets = {});

// A {m, k} times the transpose of B {n, k}, and times each of the scales {1} that follow.
std::vector<std::vector<double>> gemm_reference(const std::vector<HostTensor>& inputs);

// Of each rank scale times the sum over the ranks s of A_s[rank] B_s^T, plus bias. `inputs` are
// each rank's A {ranks, m, k}, B {n, k} and, with them, scale {1} and bias {n}.
std::vector<std::vector<double>> reduce_scatter_reference(std::int64_t ranks, bool has_scale,
                                                          bool has_bias,
                                                          const std::vector<HostTensor>& inputs);

// Of each rank A_s B^T for all ranks s, with its own B. `inputs` are each rank's A {m, k} and B
// {n, k}.
std::vector<std::vector<double>> all_gather_reference(std::int64_t ranks,
                                                      const std::vector<HostTensor>& inputs);

}  // namespace tilewright::kernels
