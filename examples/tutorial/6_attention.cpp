#include "lesson.h"

namespace tilewright::tutorial {
namespace {

Kernel one_head() {
  Kernel kernel("one_head");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor V = kernel.in("V", bf16, {keys, 64}), O = kernel.out("O", bf16, {queries, 64});
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
  return kernel;
}

}  // namespace

std::vector<double> attention_in_float64(const std::vector<HostTensor>& t) {
  const std::vector<double> scores = product(t[0], t[1]);
  const std::int64_t queries = t[0].shape()[0], keys = t[1].shape()[0];
  std::vector<double> outputs;
  for (std::int64_t i = 0; i < queries; ++i) {
    std::vector<double> row(64);
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double weight = std::exp(scores[static_cast<std::size_t>(i * keys + j)] / 8);
      sum += weight;
      for (std::int64_t d = 0; d < 64; ++d)
        row[static_cast<std::size_t>(d)] += weight * t[2].at({j, d});
    }
    for (const double value : row) outputs.push_back(value / sum);
  }
  return outputs;
}

Lesson attention() {
  constexpr std::int64_t kQueries = 100, kKeys = 150;
  return {
      one_head(),
      {HostTensor::random_normal(bf16, {kQueries, 64}, 1),
       HostTensor::random_normal(bf16, {kKeys, 64}, 2),
       HostTensor::random_normal(bf16, {kKeys, 64}, 3), HostTensor::poisoned(bf16, {kQueries, 64})},
      attention_in_float64,
      6e-3,
      4.0 * kQueries * kKeys * 64};
}

}  // namespace tilewright::tutorial
