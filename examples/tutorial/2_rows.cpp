#include "lesson.h"

namespace tilewright::tutorial {
namespace {

Kernel normalised_rows() {
  Kernel kernel("normalised_rows");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", at_most(1024));
  const Tensor X = kernel.in("X", bf16, {rows, columns});
  const Tensor Y = kernel.out("Y", bf16, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, 4));
  const Block own = rows.block(i, 4), all_columns = columns.block(0, 1024);
  const Tile x = load(X(own, all_columns)).cast(f32);
  const Tile count = Tile({1, 1}, columns).cast(f32);
  const Tile mean_square = reduce_sum(x * x, 1) / count;  // {4, 1}
  store(Y(own, all_columns), (x * rsqrt(mean_square + 1e-5)).cast(bf16));
  return kernel;
}

}  // namespace

Lesson rows() {
  constexpr std::int64_t kRows = 50, kColumns = 700;
  return {normalised_rows(),
          {HostTensor::random_normal(bf16, {kRows, kColumns}, 1),
           HostTensor::poisoned(bf16, {kRows, kColumns})},
          [](const std::vector<HostTensor>& t) {
            std::vector<double> y;
            for (std::int64_t i = 0; i < kRows; ++i) {
              double squares = 0;
              for (std::int64_t j = 0; j < kColumns; ++j)
                squares += t[0].at({i, j}) * t[0].at({i, j});
              for (std::int64_t j = 0; j < kColumns; ++j) {
                y.push_back(t[0].at({i, j}) / std::sqrt(squares / kColumns + 1e-5));
              }
            }
            return y;
          },
          4e-3,
          4.0 * kRows * kColumns};
}

}  // namespace tilewright::tutorial
