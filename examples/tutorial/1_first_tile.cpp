#include "lesson.h"

namespace tilewright::tutorial {
namespace {

Kernel scaled_sum() {
  Kernel kernel("scaled_sum");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n}), Y = kernel.in("Y", f32, {n});
  const Tensor Z = kernel.out("Z", f32, {n});
  const auto [i] = kernel.grid(ceil_div(n, 1024));
  const Block own = n.block(i, 1024);
  store(Z(own), 2 * load(X(own)) + load(Y(own)));
  return kernel;
}

}  // namespace

Lesson first_tile() {
  constexpr std::int64_t kLength = 10'000;
  return {scaled_sum(),
          {HostTensor::random_normal(f32, {kLength}, 1),
           HostTensor::random_normal(f32, {kLength}, 2), HostTensor::poisoned(f32, {kLength})},
          [](const std::vector<HostTensor>& t) {
            std::vector<double> z;
            for (std::int64_t i = 0; i < kLength; ++i) z.push_back(2 * t[0].flat(i) + t[1].flat(i));
            return z;
          },
          1e-6,
          2.0 * kLength};
}

}  // namespace tilewright::tutorial
