#include "kernels/attention_sm100_forward.h"

namespace tilewright::kernels {
namespace {

template <typename Order>
Kernel forward_sm100(const Attention& a, AttentionRoles roles, const Caller& caller) {
  check_attention(a, caller);
  const Sm100Plan plan = sm100_plan(a, roles, caller);
  Kernel kernel(caller.function);
  kernel.target("sm_100a");
  ForwardSm100<Order>(kernel, a, plan);
  return kernel;
}

}  // namespace

Kernel attention_forward_sm100(const Attention& a, AttentionRoles roles, SourceLocation where) {
  return forward_sm100<BatchOrder>(a, roles, {"attention_forward_sm100", where});
}

Kernel attention_varlen_forward_sm100(const Attention& a, AttentionRoles roles,
                                      SourceLocation where) {
  return forward_sm100<PackedOrder>(a, roles, {"attention_varlen_forward_sm100", where});
}

}  // namespace tilewright::kernels
