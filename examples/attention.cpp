// Causal attention in the tile language, run on the CPU on random tensors and held against the
// formula in float64.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/kernel.h"

using namespace tilewright;

namespace {

constexpr int kHeads = 2, kDim = 64;

// O = softmax(Q K^T / sqrt(dim)) V; query i sees the keys up to i + keys - queries.
Kernel attention(int heads, int dim) {
  Kernel kernel("attention");
  const Dim batch = kernel.dim("batch"), queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {batch, queries, heads, dim});
  const Tensor K = kernel.in("K", bf16, {batch, keys, heads, dim});
  const Tensor V = kernel.in("V", bf16, {batch, keys, heads, dim});
  const Tensor O = kernel.out("O", bf16, {batch, queries, heads, dim});

  // One block of the grid owns 64 query rows of one head.
  const auto [x, h, b] = kernel.grid(ceil_div(queries, 64), heads, batch);
  const Block rows = queries.block(x, 64);
  const Mask mask = causal(queries, keys);
  const double scale = 1 / std::sqrt(dim);

  const Tile q = load(Q(b, rows, h, all));
  // A finite start: a row that has seen nothing yet would else be shifted by -inf - -inf.
  Var maximum{full({rows, 1}, -1e30)};
  Var sum{zeros({rows, 1})};
  Var acc{zeros({rows, dim})};
  for (Block cols : mask.blocks(rows, keys, 32)) {
    const Tile k = load(K(b, cols, h, all));
    const Tile scores = mask.apply(dot(q, k.T()) * scale, rows, cols);
    const Tile before = maximum;
    maximum = max(maximum, reduce_max(scores, 1));
    const Tile weights = exp(scores - maximum);
    const Tile rescale = exp(before - maximum);
    sum = sum * rescale + reduce_sum(weights, 1);
    acc = acc * rescale + dot(weights.cast(bf16), load(V(b, cols, h, all)));
  }
  store(O(b, rows, h, all), where(sum == 0, 0, acc / sum));
  return kernel;
}

// One row of the result by the formula.
std::vector<double> attend(const HostTensor& Q, const HostTensor& K, const HostTensor& V,
                           std::int64_t query, std::int64_t head) {
  const std::int64_t visible = query + 1 + K.shape()[1] - Q.shape()[1];
  std::vector<double> weights(static_cast<std::size_t>(std::max<std::int64_t>(visible, 0)));
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    for (std::int64_t d = 0; d < kDim; ++d) {
      weights[j] += Q.at({0, query, head, d}) * K.at({0, key, head, d});
    }
    weights[j] /= std::sqrt(kDim);
    largest = std::max(largest, weights[j]);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  std::vector<double> row(kDim);
  for (std::size_t j = 0; j < weights.size(); ++j) {
    for (std::size_t d = 0; d < row.size(); ++d) {
      row[d] += weights[j] / sum *
                V.at({0, static_cast<std::int64_t>(j), head, static_cast<std::int64_t>(d)});
    }
  }
  return row;
}

}  // namespace

int main() {
  // No multiple of the blocks' sizes: the last block of each axis is cut.
  constexpr std::int64_t kQueries = 75, kKeys = 101;
  HostTensor Q = HostTensor::random_normal(bf16, {1, kQueries, kHeads, kDim}, 1);
  HostTensor K = HostTensor::random_normal(bf16, {1, kKeys, kHeads, kDim}, 2);
  HostTensor V = HostTensor::random_normal(bf16, {1, kKeys, kHeads, kDim}, 3);
  HostTensor O = HostTensor::poisoned(bf16, {1, kQueries, kHeads, kDim});
  try {
    const Executable executable = compile(attention(kHeads, kDim), "cpu");
    executable.run({ref(Q), ref(K), ref(V), ref(O)});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }

  double squares = 0, squared_errors = 0;
  for (std::int64_t query = 0; query < kQueries; ++query) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const std::vector<double> row = attend(Q, K, V, query, head);
      for (std::size_t d = 0; d < row.size(); ++d) {
        const double error = O.at({0, query, head, static_cast<std::int64_t>(d)}) - row[d];
        squares += row[d] * row[d];
        squared_errors += error * error;
      }
    }
  }
  const double error = std::sqrt(squared_errors / squares);
  std::printf("attention: relative RMS error %.2e against float64\n", error);
  // Half an ulp of bf16 is 2^-9 = 2e-3, for the weights and once more for the result.
  return error < 4e-3 ? 0 : 1;
}
