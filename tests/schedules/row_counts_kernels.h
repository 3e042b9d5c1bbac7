#pragma once

#include <cmath>
#include <vector>

#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels of the tile level whose products have different row counts.
namespace tilewright::test {

// The gradients of attention in one kernel. Products of keys' rows stay in the block, and one of
// queries' rows is added in memory. `L`, `D`: statistics of queries.
inline Kernel gradients_in_one(Order order, int dim, int block_q = 64, int block_k = 128) {
  Kernel kernel("gradients_in_one");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const auto of = [&](const char* name, const Dim& rows) {
    return kernel.in(name, bf16, {rows, dim});
  };
  const Tensor Q = of("Q", queries), K = of("K", keys), V = of("V", keys), dO = of("dO", queries);
  const Tensor L = kernel.in("L", bf16, {queries}), D = kernel.in("D", bf16, {queries});
  const Tensor dK = kernel.out("dK", bf16, {keys, dim}), dV = kernel.out("dV", bf16, {keys, dim});
  const Tensor dQ = kernel.inout("dQ", f32, {queries, dim});
  const auto [x] = kernel.grid(ceil_div(keys, block_k));
  const Block cols = keys.block(x, block_k);
  const Tile k = load(K(cols, all)), v = load(V(cols, all));
  Var dk{zeros({cols, dim})}, dv{zeros({cols, dim})};
  for (Block rows : blocks(queries, block_q)) {
    const Tile q = load(Q(rows, all)), grad = load(dO(rows, all));
    const auto row = [&](const Tensor& numbers) {
      return load(numbers(rows)).cast(f32).reshape({1, block_q});
    };
    const Tile p = exp2(dot(k, q.T()) * 0.1f - row(L));
    dv = dot(p.cast(bf16), grad, dv);
    const Tile ds = (p * (dot(v, grad.T()) - row(D))).cast(bf16);
    dk = dot(ds, q, dk);
    add(dQ(rows, all), dot(ds.T(), k), order);
  }
  store(dK(cols, all), Tile(dk).cast(bf16));
  store(dV(cols, all), Tile(dv).cast(bf16));
  return kernel;
}

// Values of Q, K, V, dO, L, D, dK, dV and dQ, the last three as they become.
inline void become_gradients(std::vector<std::vector<double>>& v, std::int64_t queries,
                             std::int64_t keys, std::int64_t dim) {
  const auto product = [&](int a, std::int64_t i, int b, std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < dim; ++c) sum += v[a][i * dim + c] * v[b][j * dim + c];
    return sum;
  };
  for (const int result : {6, 7}) v[result].assign(static_cast<std::size_t>(keys * dim), 0);
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const double p = std::exp2(product(0, i, 1, j) * 0.1 - v[4][i]);
      const double ds = p * (product(3, i, 2, j) - v[5][i]);
      for (std::int64_t c = 0; c < dim; ++c) {
        v[6][j * dim + c] += ds * v[0][i * dim + c];
        v[7][j * dim + c] += p * v[3][i * dim + c];
        v[8][i * dim + c] += ds * v[1][j * dim + c];
      }
    }
  }
}

// Attention whose sums are transposed: 128 rows of scores, and a row of O^T for each of 64 dims.
inline Kernel transposed_attention() {
  Kernel kernel("transposed_attention");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor V = kernel.in("V", bf16, {keys, 64}), O = kernel.out("O", bf16, {queries, 64});
  const auto [x] = kernel.grid(ceil_div(queries, 128));
  const Block rows = queries.block(x, 128);
  const Tile q = load(Q(rows, all));
  Var most{full({rows, 1}, -1e30f)}, total{zeros({rows, 1})}, sum{zeros({64, 128})};
  for (Block cols : blocks(keys, 64)) {
    const Tile s = dot(q, load(K(cols, all)).T());
    const Tile now = max(most, reduce_max(s, 1)), p = exp(s - now), scale = exp(most - now);
    total = total * scale + reduce_sum(p, 1);
    sum = sum * scale.T() + dot(load(V(cols, all)).T(), p.cast(bf16).T());
    most = now;
  }
  store(O(rows, all), (sum / Tile(total).T()).cast(bf16).T());
  return kernel;
}

// A B^T and C B^T in blocks of these rows. The latter is scaled by rows, and `minus_most` takes the
// greatest of its row away.
inline Kernel two_row_counts(int first, int second, int columns, bool minus_most) {
  Kernel kernel("two_row_counts");
  const Dim m = kernel.dim("m"), other = kernel.dim("other"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), C = kernel.in("C", bf16, {other, k});
  const Tensor B = kernel.in("B", bf16, {columns, k}), scales = kernel.in("scales", f32, {other});
  const Tensor X = kernel.out("X", bf16, {m, columns}), Y = kernel.out("Y", f32, {other, columns});
  const auto [x] = kernel.grid(max(ceil_div(m, first), ceil_div(other, second)));
  const Block rows = m.block(x, first), others = other.block(x, second);
  Var of_rows{zeros({rows, columns})}, of_others{zeros({others, columns})};
  for (Block depth : blocks(k, 64)) {
    const Tile b = load(B(all, depth)).T();
    of_rows = dot(load(A(rows, depth)), b, of_rows);
    of_others = dot(load(C(others, depth)), b, of_others);
  }
  const Tile y = of_others * load(scales(others)).reshape({second, 1});
  store(X(rows, all), Tile(of_rows).cast(bf16));
  store(Y(others, all), minus_most ? y - reduce_max(y, 1) : y);
  return kernel;
}

}  // namespace tilewright::test
