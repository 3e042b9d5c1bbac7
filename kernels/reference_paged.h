#pragma once

#include <cstdint>
#include <vector>

#include "kernels/reference.h"

namespace tilewright::kernels {

// attention_paged in float64: `queries` and `keys` of the sizes are not asked. The inputs are Q,
// cu_seqlens_q, lengths, block_table, the cache and, where there are any, the heads' sinks. The
// cache is K and V; with `quantised` their scales behind them; with `latent` KV alone. Queries of
// no sequence are NaN, as what is not written.
struct PagedCache {
  bool quantised = false, latent = false;
};
std::vector<std::vector<double>> attention_paged_reference(const AttentionSizes& sizes,
                                                           const PagedCache& cache,
                                                           const std::vector<HostTensor>& inputs);

// attention_paged_plan of a GPU that computes so many items at a time. The inputs are cu_seqlens_q
// and lengths.
struct PlanSizes {
  int heads, kv_heads, window, fixed_split_size;
  std::int64_t places;
  bool latent;
};
std::vector<double> attention_paged_plan_reference(const PlanSizes& sizes,
                                                   const HostTensor& cu_seqlens_q,
                                                   const HostTensor& lengths);

}  // namespace tilewright::kernels
