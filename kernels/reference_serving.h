#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/host_tensor.h"

// What servers do around attention, in float64, written without the language.
namespace tilewright::kernels {

struct AppendSizes {
  std::int64_t page, rotary_dim;
  bool is_quantised, is_latent;
};
// The inputs of kv_append in their order; the caches behind it.
std::vector<std::vector<double>> kv_append_reference(const AppendSizes& sizes,
                                                     const std::vector<HostTensor>& inputs);

// O_parts {parts, rows, heads, dim} and LSE_parts {parts, rows, heads}.
std::vector<std::vector<double>> merge_states_reference(const std::vector<HostTensor>& inputs);

}  // namespace tilewright::kernels
