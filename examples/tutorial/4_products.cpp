#include "lesson.h"

namespace tilewright::tutorial {
namespace {

Kernel matrix_product() {
  Kernel kernel("matrix_product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    sum = dot(load(A(rows, depth)), load(B(cols, depth)).T(), sum);
  }
  store(C(rows, cols), sum);
  return kernel;
}

}  // namespace

Lesson products() {
  constexpr std::int64_t kM = 200, kN = 136, kK = 96;
  return {matrix_product(),
          {HostTensor::random_normal(bf16, {kM, kK}, 1),
           HostTensor::random_normal(bf16, {kN, kK}, 2), HostTensor::poisoned(bf16, {kM, kN})},
          [](const std::vector<HostTensor>& t) { return product(t[0], t[1]); },
          4e-3,
          2.0 * kM * kN * kK};
}

}  // namespace tilewright::tutorial
