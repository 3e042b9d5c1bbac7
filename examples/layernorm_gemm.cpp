// A layer's normalisation and the projection behind it in one kernel: Y = layernorm(X) W^T. The
// normalised rows are made in registers, on the way into the product.

#include "example.h"

using namespace tilewright;

namespace {

constexpr double kEpsilon = 1e-5;

// One block of the grid owns 128 rows of Y and eight times 256 columns, so that it takes the mean
// and the variance of its rows once for all eight.
Kernel layernorm_gemm() {
  Kernel kernel("layernorm_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k", at_least(1));
  const Tensor X = kernel.in("X", bf16, {m, k});
  const Tensor gain = kernel.in("gain", f32, {k}), bias = kernel.in("bias", f32, {k});
  const Tensor W = kernel.in("W", bf16, {n, k});
  const Tensor Y = kernel.out("Y", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 2048), ceil_div(m, 128));
  const Block rows = m.block(y, 128);

  Var sum{zeros({rows, 1})}, squares{zeros({rows, 1})};
  for (Block depth : blocks(k, 128)) {
    const Tile values = load(X(rows, depth)).cast(f32);
    sum = sum + reduce_sum(values, 1);
    squares = squares + reduce_sum(values * values, 1);
  }
  const Tile count = Tile({1, 1}, k).cast(f32);
  const Tile mean = sum / count;
  const Tile deviation = rsqrt(max(squares / count - mean * mean, 0) + kEpsilon);
  const Tile shift = mean * deviation;

  for (Block cols : blocks(n, 256, 8 * x, min(8 * x + 8, ceil_div(n, 256)))) {
    Var acc{zeros({rows, cols})};
    for (Block depth : blocks(k, 128)) {
      const Tile normal = load(X(rows, depth)).cast(f32) * deviation - shift;
      const Tile scaled = normal * load(gain(depth)).reshape({1, 128});
      const Tile a = (scaled + load(bias(depth)).reshape({1, 128})).cast(bf16);
      acc = acc + dot(a, load(W(cols, depth)).T());
    }
    store(Y(rows, cols), acc);
  }
  return kernel;
}

std::vector<double> reference(const HostTensor& X, const HostTensor& gain, const HostTensor& bias,
                              const HostTensor& W) {
  const std::int64_t m = X.shape()[0], k = X.shape()[1], n = W.shape()[0];
  std::vector<double> Y;
  for (std::int64_t i = 0; i < m; ++i) {
    double mean = 0, variance = 0;
    for (std::int64_t d = 0; d < k; ++d) mean += X.at({i, d}) / static_cast<double>(k);
    for (std::int64_t d = 0; d < k; ++d) {
      variance += (X.at({i, d}) - mean) * (X.at({i, d}) - mean) / static_cast<double>(k);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      double y = 0;
      for (std::int64_t d = 0; d < k; ++d) {
        const double normal = (X.at({i, d}) - mean) / std::sqrt(variance + kEpsilon);
        y += (normal * gain.at({d}) + bias.at({d})) * W.at({j, d});
      }
      Y.push_back(y);
    }
  }
  return Y;
}

double error_at(const Executable& executable, std::int64_t m, std::int64_t n, std::int64_t k) {
  HostTensor X = HostTensor::random_normal(bf16, {m, k}, 1);
  HostTensor gain = HostTensor::random_normal(f32, {k}, 2);
  HostTensor bias = HostTensor::random_normal(f32, {k}, 3);
  HostTensor W = HostTensor::random_normal(bf16, {n, k}, 4);
  // Rows with a mean and a deviation of their own, which the kernel has to find.
  for (std::int64_t i = 0; i < X.elements(); ++i) {
    const auto row = static_cast<double>(i / k % 7);
    X.set_flat(i, X.flat(i) * (1 + row) + row - 3);
  }
  HostTensor Y = HostTensor::poisoned(bf16, {m, n});
  executable.run({ref(X), ref(gain), ref(bias), ref(W), ref(Y)});
  return examples::relative_error(Y, reference(X, gain, bias, W));
}

}  // namespace

// For bench/gpu_examples.py, which loads this file as a shared library.
extern "C" int example_launch(const tilewright_tensor* tensors, std::int32_t count, void* stream) {
  return examples::launch([] { return layernorm_gemm(); }, tensors, count, stream);
}

int main(int argc, char** argv) {
  // bf16 rounds the normalised rows and the result, each by 2^-9 = 2e-3 at most.
  return examples::run(argc, argv, layernorm_gemm(), 4e-3,
                       {[](const Executable& e) { return error_at(e, 150, 136, 200); },
                        [](const Executable& e) { return error_at(e, 1, 8, 64); },
                        [](const Executable& e) { return error_at(e, 129, 264, 8); }});
}
