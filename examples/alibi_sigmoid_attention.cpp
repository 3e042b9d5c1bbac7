// Attention whose weights are sigmoids instead of a softmax (Ramapuram et al., 2024), with linear
// biases for positions (ALiBi: Press et al., 2022): neither maximum nor sum is carried along.

#include <algorithm>

#include "example.h"

using namespace tilewright;

namespace {

constexpr int kHeads = 2, kDim = 128;
const double kScale = 1 / std::sqrt(static_cast<double>(kDim));

// Weight of key j for query i: sigmoid(q.k * scale + slope * (j - i) - log(keys)), j at most i.
Kernel alibi_sigmoid_attention(int heads, int dim, double scale) {
  Kernel kernel("alibi_sigmoid_attention");
  const Dim batch = kernel.dim("batch"), queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {batch, queries, heads, dim});
  const Tensor K = kernel.in("K", bf16, {batch, keys, heads, dim});
  const Tensor V = kernel.in("V", bf16, {batch, keys, heads, dim});
  const Tensor slopes = kernel.in("slopes", f32, {heads});
  const Tensor O = kernel.out("O", bf16, {batch, queries, heads, dim});
  const auto [x, h, b] = kernel.grid(ceil_div(queries, 128), heads, batch);
  const Block rows = queries.block(x, 128);
  const Mask mask = causal(queries, keys);

  const Tile q = load(Q(b, rows, h, all));
  const Tile slope = load(slopes(Dim(heads).block(h, 1))).reshape({1, 1});
  // The last query sees the last key.
  const Tile own = (rows.as_column() + Tile({1, 1}, keys - queries)).cast(f32) * slope;
  const Tile bias = own + log(Tile({1, 1}, max(keys, 1)).cast(f32));
  Var acc{zeros({rows, dim})};
  for (Block cols : mask.blocks(rows, keys, 128)) {
    const Tile s = dot(q, load(K(b, cols, h, all)).T());
    const Tile logits = s * scale + cols.as_row().cast(f32) * slope - bias;
    const Tile weights = rcp(1 + exp(-mask.apply(logits, rows, cols)));
    acc = acc + dot(weights.cast(bf16), load(V(b, cols, h, all)));
  }
  store(O(b, rows, h, all), acc);
  return kernel;
}

std::vector<double> reference(const HostTensor& Q, const HostTensor& K, const HostTensor& V,
                              const HostTensor& slopes) {
  std::vector<double> O(static_cast<std::size_t>(Q.elements()));
  const std::int64_t queries = Q.shape()[1], keys = K.shape()[1];
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t position = i + keys - queries;
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t j = 0; j <= std::min(position, keys - 1); ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < kDim; ++d) score += Q.at({0, i, h, d}) * K.at({0, j, h, d});
        const double logit = score * kScale + slopes.at({h}) * static_cast<double>(j - position) -
                             std::log(static_cast<double>(keys));
        const double weight = 1 / (1 + std::exp(-logit));
        for (std::int64_t d = 0; d < kDim; ++d) {
          O[static_cast<std::size_t>((i * kHeads + h) * kDim + d)] += weight * V.at({0, j, h, d});
        }
      }
    }
  }
  return O;
}

double error_at(const Executable& executable, std::int64_t queries, std::int64_t keys) {
  HostTensor Q = HostTensor::random_normal(bf16, {1, queries, kHeads, kDim}, 1);
  HostTensor K = HostTensor::random_normal(bf16, {1, keys, kHeads, kDim}, 2);
  HostTensor V = HostTensor::random_normal(bf16, {1, keys, kHeads, kDim}, 3);
  HostTensor slopes = HostTensor::from_values(f32, {kHeads}, {1.0 / 16, 1.0 / 256});
  HostTensor O = HostTensor::poisoned(bf16, Q.shape());
  executable.run({ref(Q), ref(K), ref(V), ref(slopes), ref(O)});
  return examples::relative_error(O, reference(Q, K, V, slopes));
}

}  // namespace

// For bench/gpu_examples.py, which loads this file as a shared library.
extern "C" int example_launch(const tilewright_tensor* tensors, std::int32_t count, void* stream) {
  return examples::launch([] { return alibi_sigmoid_attention(16, kDim, kScale); }, tensors, count,
                          stream);
}

int main(int argc, char** argv) {
  // bf16 rounds the weights and the result, each by 2^-9 = 2e-3 at most.
  return examples::run(argc, argv, alibi_sigmoid_attention(kHeads, kDim, kScale), 4e-3,
                       {[](const Executable& e) { return error_at(e, 150, 200); },
                        [](const Executable& e) { return error_at(e, 200, 150); },
                        [](const Executable& e) { return error_at(e, 1, 1); }});
}
