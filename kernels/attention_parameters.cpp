#include "kernels/attention_parameters.h"

#include <string>

#include "tilewright/error.h"

namespace tilewright::kernels {
namespace {

int checked_group(const Attention& a) {
  const auto fail = [](const std::string& message) {
    throw Error(ErrorKind::usage, {}, "attention: " + message, "attention: " + message);
  };
  const auto positive = [&](const char* name, int value) {
    if (value <= 0) fail(std::string(name) + " is " + std::to_string(value) + ", not positive");
  };
  positive("heads", a.heads);
  positive("kv_heads", a.kv_heads);
  positive("dim", a.dim);
  positive("dim_v", a.dim_v);
  positive("block_q", a.block_q);
  positive("block_k", a.block_k);
  if (a.heads % a.kv_heads != 0) {
    fail("heads " + std::to_string(a.heads) + " is not a multiple of kv_heads " +
         std::to_string(a.kv_heads));
  }
  if (a.window < 0) fail("window is " + std::to_string(a.window) + ", negative");
  if (a.window > 0 && !a.causal) fail("a window needs causal = true");
  if (a.scale < 0) fail("scale is " + std::to_string(a.scale) + ", negative");
  return a.heads / a.kv_heads;
}

}  // namespace

AttentionParameters::AttentionParameters(Kernel& kernel, const Attention& a)
    : group(checked_group(a)),
      scale(a.scale > 0 ? a.scale : 1 / std::sqrt(a.dim)),
      batch(kernel.dim("batch")),
      queries(kernel.dim("queries")),
      keys(kernel.dim("keys")),
      Q(kernel.in("Q", a.dtype, {batch, queries, a.heads, a.dim})),
      K(kernel.in("K", a.dtype, {batch, keys, a.kv_heads, a.dim})),
      V(kernel.in("V", a.dtype, {batch, keys, a.kv_heads, a.dim_v})),
      O(kernel.out("O", a.dtype, {batch, queries, a.heads, a.dim_v})),
      LSE(kernel.out("LSE", f32, {batch, a.heads, queries})),
      mask(a.causal ? causal(queries, keys, a.window) : everything()) {}

}  // namespace tilewright::kernels
