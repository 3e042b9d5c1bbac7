#include "tilewright/kernels/attention.h"

#include <algorithm>

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

Kernel attention_forward(const Attention& a, SourceLocation where) {
  check_attention(a, {"attention_forward", where});
  Kernel kernel("attention_forward");
  const AttentionParameters p(kernel, a);
  const auto [x, h, b] = kernel.grid(ceil_div(p.queries, a.block_q), a.heads, p.batch);
  const Block rows = p.queries.block(x, a.block_q);
  const Index kv_head = h / p.group;

  const Tile q = load(p.Q(b, rows, h, all));
  OnlineSoftmax softmax(rows, p.scale, p.sink(h));
  Var acc{zeros({rows, a.dim_v})};
  for (Block cols : p.mask.blocks(rows, p.keys, a.block_k)) {
    const Tile k = load(p.K(b, cols, kv_head, all));
    const Tile s = p.mask.apply(p.capped(dot(q, k.T())), rows, cols);
    const auto [weights, rescale] = softmax.step(s);
    const Tile v = load(p.V(b, cols, kv_head, all));
    acc = acc * rescale + dot(weights.cast(a.dtype), v);
  }
  store(p.O(b, rows, h, all), acc * softmax.normaliser());
  store(p.LSE(b, h, rows), softmax.log_sum_exp().reshape({rows.size()}));
  return kernel;
}

Attention with_tile_blocks(Attention a) {
  // Three warpgroups cover more of each other's exponentials than two, where their registers hold
  // scores of 64 keys beside the sums. Two stages of keys and values fit beside the queries.
  const int widest = std::max(a.dim, a.dim_v);
  a.block_q = plan_case("rows for three warpgroups", widest <= 128) ? 192 : 128;
  const bool wide_blocks = widest <= 64 || (widest > 128 && a.dim + a.dim_v <= 256);
  a.block_k = plan_case("blocks of 128 keys", wide_blocks) ? 128 : 64;
  return a;
}

Attention with_cpu_blocks(Attention a) {
  // Keys and values are packed once for all rows of a block. But the shorter a block, the closer it
  // ends at a causal mask.
  a.block_q = plan_case("causal", a.causal) ? 128 : 256;
  a.block_k = 128;
  return a;
}

}  // namespace tilewright::kernels
