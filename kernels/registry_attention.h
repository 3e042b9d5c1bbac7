#pragma once

#include <vector>

#include "kernels/reference.h"
#include "kernels/registry_options.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library.h"

// What entries of attention share.
namespace tilewright::kernels {

LibraryKernel attention_forward_entry();
LibraryKernel attention_forward_fp8_entry();
LibraryKernel attention_varlen_forward_entry();
LibraryKernel attention_backward_entry();
LibraryKernel attention_varlen_backward_entry();
// Groups of heads of which several stay in L2 at the sizes that are simulated, and one is left
// over.
KernelOption l2_option(const char* little);
// What scores are multiplied by, with 0 for a default, and what caps them.
KernelOption scale_option();
KernelOption softcap_option();
double score_scale_of(const OptionValues& options);
// What every attention over sequences has: heads, dims, a mask, the dtype and the scale.
Attention attention_shape_of(const OptionValues& options);
std::vector<KernelOption> attention_shape_options(const char* dim, Values dims, Values value_dims);
Attention attention_of(const OptionValues& options);
AttentionSizes attention_sizes_of(const OptionValues& options);
// Two products over the visible part of `scores` of each head; a causal mask counts as half of it.
double attention_operations(const OptionValues& options, double scores);
// How often that are those of the gradients: five products where the forward pass has two.
double attention_backward_products(const OptionValues& options);
// Where the sequences of a packed tensor begin: so many rows cut at random places, which are the
// same part of the whole for every tensor of a seed.
HostTensor random_offsets(std::int64_t batch, std::int64_t rows, std::uint64_t seed);

}  // namespace tilewright::kernels
