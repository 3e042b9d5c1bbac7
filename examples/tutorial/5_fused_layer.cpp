#include "lesson.h"

namespace tilewright::tutorial {
namespace {

Tile gelu(const Tile& z) { return z * (erf(z * std::sqrt(0.5)) * 0.5 + 0.5); }

Kernel layer() {
  Kernel kernel("layer");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {n, k});
  const Tensor bias = kernel.in("bias", f32, {n}), Y = kernel.out("Y", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    sum = dot(load(X(rows, depth)), load(W(cols, depth)).T(), sum);
  }
  const Tile z = sum + load(bias(cols)).reshape({1, 128});
  store(Y(rows, cols), gelu(z).cast(bf16));
  return kernel;
}

}  // namespace

Lesson fused_layer() {
  constexpr std::int64_t kM = 200, kN = 136, kK = 96;
  return {
      layer(),
      {HostTensor::random_normal(bf16, {kM, kK}, 1), HostTensor::random_normal(bf16, {kN, kK}, 2),
       HostTensor::random_normal(f32, {kN}, 3), HostTensor::poisoned(bf16, {kM, kN})},
      [](const std::vector<HostTensor>& t) {
        std::vector<double> y = product(t[0], t[1]);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const double z = y[i] + t[2].flat(static_cast<std::int64_t>(i % kN));
          y[i] = z * std::erfc(-z * std::sqrt(0.5)) / 2;
        }
        return y;
      },
      4e-3,
      2.0 * kM * kN * kK};
}

}  // namespace tilewright::tutorial
