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

// CTAs of a block of keys of the plan, each with 64 of them.
int wide_backward_ctas(const Attention& attention);
int wide_backward_keys(const Attention& attention);

struct WideBackwardPlan {
  bool ordered;  // dQ is summed in the order of the blocks of keys
  // Several heads share keys: parts of them may go through a block of keys for themselves.
  bool shares;
  KeySums keys;
  // Who alone adds to a block of queries converts it: under a mask the first rows see one block of
  // keys, and are never in memory as a sum then.
  bool alone_converts;

  Order order() const { return ordered ? Order::blocks : Order::any; }
  bool sums_keys_apart() const { return shares && keys == KeySums::apart; }
};
WideBackwardPlan wide_backward_plan(const Attention& attention, Order order, KeySums keys);

// The shape of the sums of dQ: lines of 128 f32, in the order of the registers that add them.
// `blocks`: of queries, of all heads.
std::vector<Dim> wide_backward_sums(const Attention& attention, const Dim& blocks);
// In order, the words of a block of queries that count how many blocks of keys have added to it.
int wide_backward_turns(const Attention& attention);
// What a word is at least, when who alone adds to the sum has converted it.
inline constexpr int kConverted = 1 << 28;
// As gradients_sm90 and query_gradient_of_sums. Behind dV: where who alone adds converts, dQ; in
// order, words of dQ that are 0 before; where heads share keys, sums of dK and dV, and words of
// them that are 0 before.
template <typename Sequences>
Kernel wide_gradients_sm90(const Attention& attention, const WideBackwardPlan& plan,
                           const std::string& name);
template <typename Sequences>
Kernel wide_query_gradient_of_sums(const Attention& attention, const WideBackwardPlan& plan,
                                   const std::string& name);

}  // namespace tilewright::kernels
