// Decoding with multi-head latent attention (DeepSeek-V2, 2024), its projections absorbed: all
// heads of a token attend to the same rows of 576 numbers, whose first 512 are also the values. A
// row of the cache is read once for both products and all heads.

#include <algorithm>

#include "example.h"
#include "tilewright/kernels/softmax.h"

using namespace tilewright;

namespace {

constexpr int kDim = 576, kDimV = 512;
const double kScale = 1 / std::sqrt(192.0);  // of the head before absorption: 128 + 64

// One block of the grid owns 64 heads of one query token.
Kernel mla_decode() {
  Kernel kernel("mla_decode");
  const Dim batch = kernel.dim("batch"), heads = kernel.dim("heads"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {batch, heads, kDim});
  const Tensor KV = kernel.in("KV", bf16, {batch, keys, kDim});
  const Tensor O = kernel.out("O", bf16, {batch, heads, kDimV});
  const auto [x, b] = kernel.grid(ceil_div(heads, 64), batch);
  const Block rows = heads.block(x, 64);

  const Tile q = load(Q(b, rows, all));
  kernels::OnlineSoftmax softmax(rows, kScale);
  Var acc{zeros({rows, kDimV})};
  for (Block cols : blocks(keys, 64)) {
    const Tile kv = load(KV(b, cols, all));
    const auto [weights, rescale] = softmax.step(dot(q, kv.T()));
    acc = acc * rescale + dot(weights.cast(bf16), kv.slice({0, 0}, {64, kDimV}));
  }
  store(O(b, rows, all), acc * softmax.normaliser());
  return kernel;
}

std::vector<double> reference(const HostTensor& Q, const HostTensor& KV) {
  const std::int64_t batch = Q.shape()[0], heads = Q.shape()[1], keys = KV.shape()[1];
  std::vector<double> O(static_cast<std::size_t>(batch * heads * kDimV));
  for (std::int64_t row = 0; row < batch * heads; ++row) {
    const std::int64_t cache = row / heads * keys * kDim;
    std::vector<double> weights(static_cast<std::size_t>(keys));
    for (std::int64_t j = 0; j < keys; ++j) {
      double& score = weights[static_cast<std::size_t>(j)];
      for (int d = 0; d < kDim; ++d)
        score += Q.flat(row * kDim + d) * KV.flat(cache + j * kDim + d);
      score *= kScale;
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (std::int64_t j = 0; j < keys; ++j) {
      const double weight = weights[static_cast<std::size_t>(j)] / sum;
      for (int d = 0; d < kDimV; ++d) {
        O[static_cast<std::size_t>(row * kDimV + d)] += weight * KV.flat(cache + j * kDim + d);
      }
    }
  }
  return O;
}

double error_at(const Executable& executable, std::int64_t batch, std::int64_t heads,
                std::int64_t keys) {
  HostTensor Q = HostTensor::random_normal(bf16, {batch, heads, kDim}, 1);
  HostTensor KV = HostTensor::random_normal(bf16, {batch, keys, kDim}, 2);
  HostTensor O = HostTensor::poisoned(bf16, {batch, heads, kDimV});
  executable.run({ref(Q), ref(KV), ref(O)});
  return examples::relative_error(O, reference(Q, KV));
}

}  // namespace

// For bench/gpu_examples.py, which loads this file as a shared library.
extern "C" int example_launch(const tilewright_tensor* tensors, std::int32_t count, void* stream) {
  return examples::launch([] { return mla_decode(); }, tensors, count, stream);
}

int main(int argc, char** argv) {
  // bf16 rounds the weights and the result, each by 2^-9 = 2e-3 at most.
  return examples::run(argc, argv, mla_decode(), 4e-3,
                       {[](const Executable& e) { return error_at(e, 2, 16, 150); },
                        [](const Executable& e) { return error_at(e, 1, 128, 64); },
                        [](const Executable& e) { return error_at(e, 1, 65, 1); }});
}
