#pragma once

#include <vector>

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/program.h"

// What both levels of attention_forward_fp8 share.
namespace tilewright::kernels {

// Raises for what attention_forward_fp8 does not take.
void check_attention_fp8(const Attention& a, const Caller& caller);

// The heads' scales, which a kernel declares in its tensors' order.
class HeadScales {
 public:
  HeadScales(Kernel& kernel, const Attention& a)
      : kv_heads_(a.kv_heads),
        of_q_(kernel.in("Q_scale", f32, {a.heads})),
        of_k_(kernel.in("K_scale", f32, {a.kv_heads})),
        of_v_(kernel.in("V_scale", f32, {a.kv_heads})) {}
  // What scores of `rows` rows (query, head), the head fastest, are multiplied by: {rows, 1}, or
  // {1, 1} for one head.
  Tile of_scores(const Block& heads, const Index& kv_head, std::int64_t rows) const;
  // {1, 1}
  Tile of_values(const Index& kv_head) const { return one(of_v_, kv_head); }

 private:
  Tile one(const Tensor& scales, const Index& kv_head) const {
    return load(scales(Dim(kv_heads_).block(kv_head, 1))).reshape({1, 1});
  }
  int kv_heads_;
  Tensor of_q_, of_k_, of_v_;
};

// Weights up to 2^8, which e4m3 has room for. A row's part of a block's sum may be as large, so
// that keys whose scores are all alike raise no maximum: a thread has a quarter of them.
constexpr OnlineSoftmax::Range range_of_weights(const Attention& a) {
  int lift = 8;
  while (lift > 0 && (a.block_k / 4) << lift > 1 << 8) --lift;
  return {8.0 - lift, 1.0 * lift};
}

// The parameters of a kernel that attends; `V` is {batch, keys, kv_heads, dim_v}, or as it is
// given.
struct Fp8Parameters : AttentionParameters, HeadScales {
  Fp8Parameters(Kernel& kernel, const Attention& a)
      : Fp8Parameters(kernel, a, BatchShapes(kernel, a)) {}

 protected:
  Fp8Parameters(Kernel& kernel, const Attention& a, const BatchShapes& shapes,
                std::vector<Dim> of_values = {})
      : AttentionParameters(
            kernel, a, shapes,
            {kernel.in("Q", f8e4m3, shapes.of_queries(a.dim)),
             kernel.in("K", f8e4m3, shapes.of_keys(a.dim)),
             kernel.in("V", f8e4m3, of_values.empty() ? shapes.of_keys(a.dim_v) : of_values),
             kernel.out("O", a.dtype, shapes.of_queries(a.dim_v)),
             kernel.out("LSE", f32, shapes.of_rows())}),
        HeadScales(kernel, a) {}
};

// Tensors of the program.
struct Fp8Buffers {
  Fp8Buffers(Program& program, const Attention& a)
      : batch(program.dim("batch")),
        queries(program.dim("queries")),
        keys(program.dim("keys")),
        Q(program.in("Q", f8e4m3, {batch, queries, a.heads, a.dim})),
        K(program.in("K", f8e4m3, {batch, keys, a.kv_heads, a.dim})),
        V(program.in("V", f8e4m3, {batch, keys, a.kv_heads, a.dim_v})),
        Q_scale(program.in("Q_scale", f32, {a.heads})),
        K_scale(program.in("K_scale", f32, {a.kv_heads})),
        V_scale(program.in("V_scale", f32, {a.kv_heads})),
        O(program.out("O", a.dtype, {batch, queries, a.heads, a.dim_v})),
        LSE(program.out("LSE", f32, {batch, a.heads, queries})) {}
  // As Fp8Parameters declare them.
  std::vector<Part> for_attention(const Buffer& values) const {
    return {Q, K, values, O, LSE, Q_scale, K_scale, V_scale};
  }
  Dim batch, queries, keys;
  Buffer Q, K, V, Q_scale, K_scale, V_scale, O, LSE;
};

}  // namespace tilewright::kernels
