#pragma once

#include "kernels/reference.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library.h"

// What entries of attention share.
namespace tilewright::kernels {

LibraryKernel attention_forward_entry();
Attention attention_of(const OptionValues& options);
AttentionSizes attention_sizes_of(const OptionValues& options);

}  // namespace tilewright::kernels
