#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/host_tensor.h"

// The meaning of exchanges and collectives over ranks in float64, written without the language.
// Inputs and outputs are those of rank 0, then those of rank 1, and so on.
namespace tilewright::kernels {

// all_to_all of Q, K and V of each rank, and all_to_all_back of its O_all. Packed, the first rows
// of the queries' and of the keys' sequences {ranks, sequences + 1} follow.
struct ExchangedHeadCounts {
  std::int64_t ranks, heads, kv_heads;
  bool packed;
};
std::vector<std::vector<double>> all_to_all_reference(const ExchangedHeadCounts& heads,
                                                      const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> all_to_all_back_reference(const ExchangedHeadCounts& heads,
                                                           const std::vector<HostTensor>& inputs);

// all_to_all of the Q, K and V that X W^T + bias is, with heads of `dim` columns; inputs are X, W,
// with `has_bias` the bias, and packed the first rows.
std::vector<std::vector<double>> projection_all_to_all_reference(
    const ExchangedHeadCounts& heads, std::int64_t dim, bool has_bias,
    const std::vector<HostTensor>& inputs);

// Of the X of each rank.
std::vector<std::vector<double>> gathered_reference(const std::vector<HostTensor>& inputs);
// Sums of all of X, or in rank r of the r-th of so many equal parts as there are ranks.
std::vector<std::vector<double>> summed_reference(const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> parts_summed_reference(const std::vector<HostTensor>& inputs);
// Of each rank the part of that number, in the order of the ranks that had them.
std::vector<std::vector<double>> exchanged_reference(const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> broadcast_reference(std::int64_t root,
                                                     const std::vector<HostTensor>& inputs);

}  // namespace tilewright::kernels
