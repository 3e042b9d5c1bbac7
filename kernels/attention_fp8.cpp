#include "kernels/attention_fp8.h"

#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

// Products of e4m3 take keys of V side by side, which they are not: weights are rounded to e4m3,
// and meet V in a wider dtype, where both are what they were.
Kernel forward(const Attention& a) {
  Kernel kernel("attention_forward_fp8");
  const Fp8Parameters p(kernel, a);
  const auto [x, h, b] = kernel.grid(ceil_div(p.queries, a.block_q), a.heads, p.batch);
  const Block rows = p.queries.block(x, a.block_q);
  const Index kv_head = h / p.group;

  const Tile q = load(p.Q(b, rows, h, all));
  OnlineSoftmax softmax(rows, p.scale, p.of_scores(Dim(a.heads).block(h, 1), kv_head, 1),
                        range_of_weights(a));
  Var acc{zeros({rows, a.dim_v})};
  for (Block cols : p.mask.blocks(rows, p.keys, a.block_k)) {
    const Tile k = load(p.K(b, cols, kv_head, all));
    const Tile s = p.mask.apply(dot(q, k.T()), rows, cols);
    const auto [weights, rescale] = softmax.step(s);
    const Tile v = load(p.V(b, cols, kv_head, all)).cast(a.dtype);
    acc = acc * rescale + dot(weights.cast(f8e4m3).cast(a.dtype), v);
  }
  store(p.O(b, rows, h, all), acc * (softmax.normaliser() * p.of_values(kv_head)));
  store(p.LSE(b, h, rows), softmax.log_sum_exp().reshape({rows.size()}));
  return kernel;
}

}  // namespace

Tile HeadScales::of_scores(const Block& heads, const Index& kv_head, std::int64_t rows) const {
  const std::int64_t count = heads.size();
  const Tile of_heads = load(of_q_(heads)).reshape({1, count}) * one(of_k_, kv_head);
  if (plan_case("a scale of one head", count == 1)) return of_heads;
  return (zeros({rows / count, count}) + of_heads).reshape({rows, 1});
}

void check_attention_fp8(const Attention& a, const Caller& caller) {
  check_attention(a, caller);
  if (a.window > 0) {
    caller.refuse("window is " + std::to_string(a.window), "attention_forward takes windows");
  }
  if (a.softcap > 0) {
    caller.refuse("softcap is " + std::to_string(a.softcap), "attention_forward takes a softcap");
  }
  if (a.sinks) caller.refuse("sinks is true", "attention_forward takes sinks");
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)), "take bf16 or f16 for O");
  }
}

Program attention_forward_fp8(const Attention& a, SourceLocation where) {
  check_attention_fp8(a, {"attention_forward_fp8", where});
  Program program("attention_forward_fp8");
  const Fp8Buffers buffers(program, a);
  program.rank(0).stream().launch(forward(a), buffers.for_attention(buffers.V));
  return program;
}

}  // namespace tilewright::kernels
