#pragma once

#include <string>

#include "kernels/attention_backward_wide_sm90.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// Columns of dK and dV that leave a warpgroup at a time.
constexpr int kDividedPanel = 64;
// Whether the warpgroups of a pair of CTAs divide the products: where one has registers for all of
// dK and dV of 64 keys, and shared memory has room for three blocks of queries.
bool is_divided_backward(const Attention& attention);

// As wide_gradients_sm90, by pairs of CTAs of which one warpgroup computes scores, and another one
// dK and dV. A block of keys of the plan is that of a pair.
template <typename Sequences>
Kernel divided_gradients_sm90(const Attention& attention, const WideBackwardPlan& plan,
                              const std::string& name);

}  // namespace tilewright::kernels
