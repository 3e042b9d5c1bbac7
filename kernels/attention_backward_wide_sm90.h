#pragma once

#include <string>
#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// Whether dims are too wide for dK and dV of 128 keys to lie in the registers of two warpgroups.
bool is_wide_backward(const Attention& attention);
// Raises for what the schedule does not take.
void check_wide_backward(const Attention& attention, const Caller& caller);

// Keys of a block of the plan: those of a CTA, or of a pair of them.
int wide_backward_keys(const Attention& attention);

// The shape of the sums of dQ: lines of 128 f32, in the order of the registers that add them.
// `blocks`: of queries, of all heads.
std::vector<Dim> wide_backward_sums(const Attention& attention, const Dim& blocks);
// In order, the words that count how many blocks of keys have added to them.
std::vector<Dim> wide_backward_turns(const Attention& attention, const Dim& blocks);
// As gradients_sm90 and query_gradient_of_sums. `ordered`: dQ is summed in the order of the blocks
// of keys.
template <typename Sequences>
Kernel wide_gradients_sm90(const Attention& attention, bool ordered, const std::string& name);
template <typename Sequences>
Kernel wide_query_gradient_of_sums(const Attention& attention, bool ordered,
                                   const std::string& name);

}  // namespace tilewright::kernels
