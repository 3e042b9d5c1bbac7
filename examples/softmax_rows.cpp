// A kernel that the library does not have: the softmax of rows, with a temperature for each. Both
// axes have any length; what a block has past the tensor's end takes no part.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/kernel.h"

using namespace tilewright;

namespace {

Kernel softmax_rows() {
  Kernel kernel("softmax_rows");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor temperature = kernel.in("temperature", f32, {rows});
  const Tensor Y = kernel.out("Y", f32, {rows, columns});

  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(x, 16);
  const Tile scale = 1 / load(temperature(own)).reshape({16, 1});

  Var maximum{full({own, 1}, -1e30)};
  for (Block cols : blocks(columns, 32)) {
    maximum = max(maximum, reduce_max(load(X(own, cols)) * scale, 1));
  }
  Var sum{zeros({own, 1})};
  for (Block cols : blocks(columns, 32)) {
    sum = sum + reduce_sum(exp(load(X(own, cols)) * scale - maximum), 1);
  }
  for (Block cols : blocks(columns, 32)) {
    store(Y(own, cols), exp(load(X(own, cols)) * scale - maximum) / sum);
  }
  return kernel;
}

double largest_error(const HostTensor& X, const HostTensor& temperature, const HostTensor& Y) {
  double worst = 0;
  for (std::int64_t i = 0; i < X.shape()[0]; ++i) {
    const auto value = [&](std::int64_t j) { return X.at({i, j}) / temperature.at({i}); };
    double largest = value(0), sum = 0;
    for (std::int64_t j = 0; j < X.shape()[1]; ++j) largest = std::max(largest, value(j));
    for (std::int64_t j = 0; j < X.shape()[1]; ++j) sum += std::exp(value(j) - largest);
    for (std::int64_t j = 0; j < X.shape()[1]; ++j) {
      const double wanted = std::exp(value(j) - largest) / sum;
      const double error = std::abs(Y.at({i, j}) - wanted) / wanted;
      // A NaN, which an element that nobody wrote still holds, must not pass.
      worst = error <= worst ? worst : error;
      if (std::isnan(error)) return error;
    }
  }
  return worst;
}

}  // namespace

int main() {
  HostTensor X = HostTensor::random_normal(f32, {37, 83}, 1);
  HostTensor temperature = HostTensor::zeros(f32, {37});
  for (std::int64_t i = 0; i < 37; ++i) {
    temperature.set({i}, 0.5 + 0.1 * static_cast<double>(i));
  }
  HostTensor Y = HostTensor::poisoned(f32, {37, 83});
  try {
    compile(softmax_rows(), "cpu").run({ref(X), ref(temperature), ref(Y)});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
  const double error = largest_error(X, temperature, Y);
  std::printf("softmax_rows: largest relative error %.2e against float64\n", error);
  return error < 1e-5 ? 0 : 1;
}
