#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels of the tile level whose schedules tests state, with small inputs that have tails.
namespace tilewright::test {

struct StatedKernel {
  Kernel kernel;
  std::vector<HostTensor> tensors;  // inputs, then outputs with poison
  std::size_t inputs = 0;
  double bound = 0;
};

inline Kernel stated_gemm(int block_m, int block_n) {
  Kernel kernel("stated_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, block_n), ceil_div(m, block_m));
  const Block rows = m.block(y, block_m), cols = n.block(x, block_n);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    sum = dot(load(A(rows, depth)), load(B(cols, depth)).T(), sum);
  }
  store(C(rows, cols), sum);
  return kernel;
}

inline Kernel stated_attention(int block_q, int block_k, int dim) {
  Kernel kernel("stated_attention");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, dim}), K = kernel.in("K", bf16, {keys, dim});
  const Tensor V = kernel.in("V", bf16, {keys, dim}), O = kernel.out("O", bf16, {queries, dim});
  const auto [x] = kernel.grid(ceil_div(queries, block_q));
  const Block rows = queries.block(x, block_q);
  const Mask mask = causal(queries, keys);
  const Tile q = load(Q(rows, all));
  Var maximum{full({rows, 1}, -1e30)};
  Var sum{zeros({rows, 1})};
  Var acc{zeros({rows, dim})};
  for (Block cols : mask.blocks(rows, keys, block_k)) {
    const Tile scores =
        mask.apply(dot(q, load(K(cols, all)).T()) * (1 / std::sqrt(dim)), rows, cols);
    const Tile before = maximum;
    maximum = max(maximum, reduce_max(scores, 1));
    const Tile weights = exp(scores - maximum), rescale = exp(before - maximum);
    sum = sum * rescale + reduce_sum(weights, 1);
    acc = acc * rescale + dot(weights.cast(bf16), load(V(cols, all)));
  }
  store(O(rows, all), where(sum == 0, 0, acc / sum));
  return kernel;
}

inline Kernel stated_softmax(int block_rows, int columns) {
  Kernel kernel("stated_softmax");
  const Dim rows = kernel.dim("rows"), width = kernel.dim("columns");
  const Tensor X = kernel.in("X", bf16, {rows, width}), Y = kernel.out("Y", bf16, {rows, width});
  const auto [x] = kernel.grid(ceil_div(rows, block_rows));
  const Block own = rows.block(x, block_rows), cols = width.block(0, columns);
  const Tile scores = load(X(own, cols)).cast(f32);
  const Tile weights = exp(scores - reduce_max(scores, 1));
  store(Y(own, cols), (weights / reduce_sum(weights, 1)).cast(bf16));
  return kernel;
}

inline HostTensor small_normal(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(bf16, std::move(shape), seed);
}

inline StatedKernel gemm_case(int block_m = 128, int block_n = 128) {
  return {stated_gemm(block_m, block_n),
          {small_normal({136, 328}, 1), small_normal({264, 328}, 2),
           HostTensor::poisoned(bf16, {136, 264})},
          2,
          1e-2};
}

inline StatedKernel attention_case(int block_q = 128, int block_k = 64, int dim = 64) {
  return {stated_attention(block_q, block_k, dim),
          {small_normal({200, dim}, 1), small_normal({328, dim}, 2), small_normal({328, dim}, 3),
           HostTensor::poisoned(bf16, {200, dim})},
          3,
          2e-2};
}

inline StatedKernel softmax_case(int block_rows = 4, int columns = 1024) {
  return {stated_softmax(block_rows, columns),
          {small_normal({13, 1000}, 1), HostTensor::poisoned(bf16, {13, 1000})},
          1,
          1e-2};
}

}  // namespace tilewright::test
