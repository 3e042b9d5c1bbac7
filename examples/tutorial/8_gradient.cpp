#include <cstdio>

#include "lesson.h"
#include "tilewright/check_gradients.h"
#include "tilewright/program.h"

namespace tilewright::tutorial {
namespace {

// P = exp(Q K^T / 8 - LSE) is what the forward pass divided by its sums.
Kernel forward() {
  Kernel kernel("forward");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor V = kernel.in("V", bf16, {keys, 64}), O = kernel.out("O", bf16, {queries, 64});
  const Tensor LSE = kernel.out("LSE", f32, {queries});
  const auto [i] = kernel.grid(ceil_div(queries, 64));
  const Block rows = queries.block(i, 64);
  const Tile q = load(Q(rows, all));
  Var maximum{full({rows, 1}, -1e30)}, sum{zeros({rows, 1})}, acc{zeros({rows, 64})};
  for (Block cols : blocks(keys, 64)) {
    const Tile scores = dot(q, load(K(cols, all)).T()) * 0.125, before = maximum;
    maximum = max(maximum, reduce_max(scores, 1));
    const Tile weights = exp(scores - maximum), rescale = exp(before - maximum);
    sum = sum * rescale + reduce_sum(weights, 1);
    acc = acc * rescale + dot(weights.cast(bf16), load(V(cols, all)));
  }
  store(O(rows, all), (acc / sum).cast(bf16));
  store(LSE(rows), (maximum + log(sum)).reshape({64}));
  return kernel;
}

// What both kernels of the backward pass read.
struct BackwardInputs {
  explicit BackwardInputs(Kernel& kernel)
      : queries(kernel.dim("queries")),
        keys(kernel.dim("keys")),
        Q(kernel.in("Q", bf16, {queries, 64})),
        K(kernel.in("K", bf16, {keys, 64})),
        V(kernel.in("V", bf16, {keys, 64})),
        O(kernel.in("O", bf16, {queries, 64})),
        LSE(kernel.in("LSE", f32, {queries})),
        dO(kernel.in("dO", bf16, {queries, 64})) {}
  // The weights of a block of queries and keys, and the scores' gradient.
  std::pair<Tile, Tile> block(const Block& rows, const Block& cols) const {
    const Tile scores = dot(load(Q(rows, all)), load(K(cols, all)).T()) * 0.125;
    const Tile weights = exp(scores - load(LSE(rows)).reshape({64, 1}));
    const Tile d_o = load(dO(rows, all));
    const Tile delta = reduce_sum(d_o.cast(f32) * load(O(rows, all)).cast(f32), 1);
    const Tile d_weights = dot(d_o, load(V(cols, all)).T());
    return {weights, weights * (d_weights - delta) * 0.125};
  }
  Dim queries, keys;
  Tensor Q, K, V, O, LSE, dO;
};

Kernel backward_queries() {
  Kernel kernel("backward_queries");
  const BackwardInputs in(kernel);
  const Tensor dQ = kernel.out("dQ", bf16, {in.queries, 64});
  const auto [i] = kernel.grid(ceil_div(in.queries, 64));
  const Block rows = in.queries.block(i, 64);
  Var d_q{zeros({rows, 64})};
  for (Block cols : blocks(in.keys, 64)) {
    const Tile d_scores = in.block(rows, cols).second;
    d_q = d_q + dot(d_scores.cast(bf16), load(in.K(cols, all)));
  }
  store(dQ(rows, all), d_q);
  return kernel;
}

Kernel backward_keys() {
  Kernel kernel("backward_keys");
  const BackwardInputs in(kernel);
  const Tensor dK = kernel.out("dK", bf16, {in.keys, 64});
  const Tensor dV = kernel.out("dV", bf16, {in.keys, 64});
  const auto [j] = kernel.grid(ceil_div(in.keys, 64));
  const Block cols = in.keys.block(j, 64);
  Var d_k{zeros({cols, 64})}, d_v{zeros({cols, 64})};
  for (Block rows : blocks(in.queries, 64)) {
    const auto [weights, d_scores] = in.block(rows, cols);
    d_v = d_v + dot(weights.cast(bf16).T(), load(in.dO(rows, all)));
    d_k = d_k + dot(d_scores.cast(bf16).T(), load(in.Q(rows, all)));
  }
  store(dK(cols, all), d_k);
  store(dV(cols, all), d_v);
  return kernel;
}

Program backward() {
  Program program("backward");
  const Dim queries = program.dim("queries"), keys = program.dim("keys");
  const Buffer Q = program.in("Q", bf16, {queries, 64}), K = program.in("K", bf16, {keys, 64});
  const Buffer V = program.in("V", bf16, {keys, 64}), O = program.in("O", bf16, {queries, 64});
  const Buffer LSE = program.in("LSE", f32, {queries}), dO = program.in("dO", bf16, {queries, 64});
  const Buffer dQ = program.out("dQ", bf16, {queries, 64});
  const Buffer dK = program.out("dK", bf16, {keys, 64}), dV = program.out("dV", bf16, {keys, 64});
  const Stream stream = program.rank(0).stream();
  stream.launch(backward_queries(), {Q, K, V, O, LSE, dO, dQ});
  stream.launch(backward_keys(), {Q, K, V, O, LSE, dO, dK, dV});
  return program;
}

}  // namespace

Program gradient_program() { return backward(); }

bool gradient() {
  GradientOptions options;
  options.sizes = {{"queries", 70}, {"keys", 100}};
  const GradientReport report = check_gradients(forward(), backward(), options);
  std::printf("%s\n", report.text().c_str());
  return report.ok() && report.gradients.size() == 3;
}

}  // namespace tilewright::tutorial
