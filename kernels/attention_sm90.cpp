#include "kernels/attention_sm90_forward.h"

namespace tilewright::kernels {
namespace {

template <typename Order>
Kernel forward_sm90(const Attention& a, const Caller& caller) {
  check_attention(a, caller);
  const Sm90Plan plan = sm90_plan(a, Order::kHasNeighbours, caller);
  Kernel kernel(caller.function);
  Forward<Order>(kernel, a, plan);
  return kernel;
}

}  // namespace

Kernel attention_forward_sm90(const Attention& a, SourceLocation where) {
  const Caller caller{"attention_forward_sm90", where};
  return a.in_pairs ? forward_sm90<PairOrder>(a, caller) : forward_sm90<BatchOrder>(a, caller);
}

Kernel attention_varlen_forward_sm90(const Attention& a, SourceLocation where) {
  const Caller caller{"attention_varlen_forward_sm90", where};
  if (a.in_pairs) {
    caller.refuse("in_pairs is set", "leave it out: pairs take sequences of one length");
  }
  return forward_sm90<PackedOrder>(a, caller);
}

}  // namespace tilewright::kernels
