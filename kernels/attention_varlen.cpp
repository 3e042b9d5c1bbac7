#include "kernels/attention_parameters.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {

Kernel attention_varlen_forward(const Attention& a, SourceLocation where) {
  check_attention(a, {"attention_varlen_forward", where});
  Kernel kernel("attention_varlen_forward");
  const VarlenParameters p(kernel, a);
  const auto [tile, h] = kernel.grid(p.queries.tiles(a.block_q), a.heads);
  const auto [b, x] = p.queries.tile(tile, a.block_q);
  const Sequence queries = p.queries.of(b), keys = p.keys.of(b);
  const Mask mask = p.mask(queries, keys);
  const Block rows = queries.block(x, a.block_q);
  const Index kv_head = h / p.group;

  const Tile q = load(p.Q(rows, h, all));
  OnlineSoftmax softmax(rows, p.scale, p.sink(h));
  Var acc{zeros({rows, a.dim_v})};
  for (Block cols : mask.blocks(rows, keys, a.block_k)) {
    const Tile k = load(p.K(cols, kv_head, all));
    const Tile s = mask.apply(p.capped(dot(q, k.T())), rows, cols);
    const auto [weights, rescale] = softmax.step(s);
    const Tile v = load(p.V(cols, kv_head, all));
    acc = acc * rescale + dot(weights.cast(a.dtype), v);
  }
  store(p.O(rows, h, all), acc * softmax.normaliser());
  store(p.LSE(h, rows), softmax.log_sum_exp().reshape({rows.size()}));
  return kernel;
}

}  // namespace tilewright::kernels
