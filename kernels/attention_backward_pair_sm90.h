#pragma once

#include <string>

#include "kernels/attention_backward_wide_sm90.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// Whether pairs of CTAs share dQ: where dim is above 128, and dim_v above 64.
bool is_paired_backward(const Attention& attention);
// Columns of a panel of V in shared memory, through which dK and dV leave.
int paired_panel(const Attention& attention);

// As wide_gradients_sm90, by pairs of CTAs. A block of keys of the plan is that of a pair.
template <typename Sequences>
Kernel pair_gradients_sm90(const Attention& attention, const WideBackwardPlan& plan,
                           const std::string& name);

}  // namespace tilewright::kernels
