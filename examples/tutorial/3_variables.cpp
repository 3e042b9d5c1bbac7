#include <algorithm>

#include "lesson.h"

namespace tilewright::tutorial {
namespace {

Kernel softmax_of_any_row() {
  Kernel kernel("softmax_of_any_row");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor Y = kernel.out("Y", f32, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, 4));
  const Block own = rows.block(i, 4);

  Var maximum{full({own, 1}, -1e30)}, sum{zeros({own, 1})};
  for (Block cols : blocks(columns, 256)) {
    const Tile x = load(X(own, cols)), before = maximum;
    maximum = max(maximum, reduce_max(x, 1));
    sum = sum * exp(before - maximum) + reduce_sum(exp(x - maximum), 1);
  }
  for (Block cols : blocks(columns, 256)) {
    store(Y(own, cols), exp(load(X(own, cols)) - maximum) / sum);
  }
  return kernel;
}

}  // namespace

Lesson variables() {
  constexpr std::int64_t kRows = 30, kColumns = 3000;
  return {softmax_of_any_row(),
          {HostTensor::random_normal(f32, {kRows, kColumns}, 1),
           HostTensor::poisoned(f32, {kRows, kColumns})},
          [](const std::vector<HostTensor>& t) {
            std::vector<double> y;
            for (std::int64_t i = 0; i < kRows; ++i) {
              double sum = 0;
              for (std::int64_t j = 0; j < kColumns; ++j) sum += std::exp(t[0].at({i, j}));
              for (std::int64_t j = 0; j < kColumns; ++j) {
                y.push_back(std::exp(t[0].at({i, j})) / sum);
              }
            }
            return y;
          },
          1e-6,
          5.0 * kRows * kColumns};
}

}  // namespace tilewright::tutorial
