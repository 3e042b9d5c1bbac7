#pragma once

#include <cstdint>
#include <vector>

#include "kernels/reference.h"

namespace tilewright::kernels {

// attention_paged in float64: `queries` and `keys` of the sizes are not asked. The inputs are Q,
// cu_seqlens_q, lengths, block_table, K, V and, where there are any, the heads' sinks. Queries of
// no sequence are NaN, as what is not written.
std::vector<std::vector<double>> attention_paged_reference(const AttentionSizes& sizes,
                                                           const std::vector<HostTensor>& inputs);

}  // namespace tilewright::kernels
