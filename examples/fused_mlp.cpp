// A multilayer perceptron in one kernel: Y = gelu(X U^T) D. The hidden activations, the largest
// matrix of the three, never leave the registers.

#include "example.h"

using namespace tilewright;

namespace {

constexpr int kDim = 256;

// The tanh form of GELU; x * sigmoid(2 u) is the same with one exponential.
Tile gelu(const Tile& x) {
  const Tile u = x * 0.7978845608028654 * (1 + x * x * 0.044715);
  return x * 0.5 * (1 + tanh(u));
}

// One block of the grid owns 128 rows and passes all hidden units by.
Kernel fused_mlp(int dim) {
  Kernel kernel("fused_mlp");
  const Dim rows = kernel.dim("rows"), hidden = kernel.dim("hidden");
  const Tensor X = kernel.in("X", bf16, {rows, dim});
  const Tensor Up = kernel.in("Up", bf16, {hidden, dim});
  const Tensor Down = kernel.in("Down", bf16, {hidden, dim});
  const Tensor Y = kernel.out("Y", bf16, {rows, dim});
  const auto [i] = kernel.grid(ceil_div(rows, 128));
  const Block own = rows.block(i, 128);

  const Tile x = load(X(own, all));
  Var y{zeros({own, dim})};
  for (Block units : blocks(hidden, 64)) {
    const Tile activation = gelu(dot(x, load(Up(units, all)).T()));
    y = y + dot(activation.cast(bf16), load(Down(units, all)));
  }
  store(Y(own, all), y);
  return kernel;
}

std::vector<double> reference(const HostTensor& X, const HostTensor& Up, const HostTensor& Down) {
  const std::int64_t rows = X.shape()[0], hidden = Up.shape()[0];
  std::vector<double> Y(static_cast<std::size_t>(rows * kDim));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < hidden; ++j) {
      double x = 0;
      for (int d = 0; d < kDim; ++d) x += X.flat(i * kDim + d) * Up.flat(j * kDim + d);
      const double gelu =
          x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
      for (int d = 0; d < kDim; ++d) {
        Y[static_cast<std::size_t>(i * kDim + d)] += gelu * Down.flat(j * kDim + d);
      }
    }
  }
  return Y;
}

double error_at(const Executable& executable, std::int64_t rows, std::int64_t hidden) {
  HostTensor X = HostTensor::random_normal(bf16, {rows, kDim}, 1);
  HostTensor Up = HostTensor::random_normal(bf16, {hidden, kDim}, 2);
  HostTensor Down = HostTensor::random_normal(bf16, {hidden, kDim}, 3);
  // Hidden units of unit variance: the activation is neither zero nor the identity.
  for (std::int64_t i = 0; i < Up.elements(); ++i) Up.set_flat(i, Up.flat(i) / 16);
  HostTensor Y = HostTensor::poisoned(bf16, {rows, kDim});
  executable.run({ref(X), ref(Up), ref(Down), ref(Y)});
  return examples::relative_error(Y, reference(X, Up, Down));
}

}  // namespace

// For bench/gpu_examples.py, which loads this file as a shared library.
extern "C" int example_launch(const tilewright_tensor* tensors, std::int32_t count, void* stream) {
  return examples::launch([] { return fused_mlp(kDim); }, tensors, count, stream);
}

int main(int argc, char** argv) {
  // bf16 rounds the activations and the result, each by 2^-9 = 2e-3 at most.
  return examples::run(argc, argv, fused_mlp(kDim), 4e-3,
                       {[](const Executable& e) { return error_at(e, 200, 300); },
                        [](const Executable& e) { return error_at(e, 1, 64); },
                        [](const Executable& e) { return error_at(e, 129, 1); }});
}
