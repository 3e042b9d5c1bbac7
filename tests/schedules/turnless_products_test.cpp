#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Products in a loop that has no turn, where the blocks that it would load exist: the sum is zero.
namespace tilewright {
namespace {

using Bounds = std::function<std::pair<Index, Index>(const Tensor& P, const Dim& d)>;

Kernel turnless_product(const Bounds& bounds) {
  Kernel kernel("turnless_product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k"), d = kernel.dim("d");
  const Tensor P = kernel.in("P", i32, {d}), A = kernel.in("A", bf16, {m, k});
  const Tensor B = kernel.in("B", bf16, {k, n}), C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 64), ceil_div(m, 64));
  const Block cols = n.block(x, 64), rows = m.block(y, 64);
  Var sum{zeros({rows, cols})};
  const auto [low, high] = bounds(P, d);
  for (Index step : range(low, high)) {
    const Block depth = k.block(step, 64);
    sum = dot(load(A(rows, depth)), load(B(depth, cols)), sum);
  }
  store(C(rows, cols), Tile(sum).cast(bf16));
  return kernel;
}

void expect_zeros(const Bounds& bounds) {
  const Kernel kernel = turnless_product(bounds);
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "sim:sm_100a", "sim:incore"}) {
    SCOPED_TRACE(target);
    HostTensor P = HostTensor::zeros(i32, {2}), A = HostTensor::random_normal(bf16, {70, 200}, 1);
    HostTensor B = HostTensor::random_normal(bf16, {200, 72}, 2);
    HostTensor C = HostTensor::poisoned(bf16, {70, 72});
    compile(kernel, target).run({ref(P), ref(A), ref(B), ref(C)});
    for (std::int64_t i = 0; i < 70 * 72; ++i) ASSERT_EQ(C.flat(i), 0) << i;
  }
}

// No product is left when the kernel is scheduled.
TEST(TurnlessProducts, OfNumbers) {
  expect_zeros([](const Tensor&, const Dim&) { return std::pair(Index(0), Index(0)); });
}
TEST(TurnlessProducts, FromANumberToTheSame) {
  expect_zeros([](const Tensor& P, const Dim&) {
    const Index low = load_index(P(0));
    return std::pair(low, low);
  });
}
// The launch decides: d is 2.
TEST(TurnlessProducts, UpToADim) {
  expect_zeros([](const Tensor&, const Dim& d) { return std::pair(Index(2), Index(d)); });
}
TEST(TurnlessProducts, FromADim) {
  expect_zeros([](const Tensor&, const Dim& d) { return std::pair(Index(d), Index(2)); });
}
TEST(TurnlessProducts, BetweenNumbersOfATensor) {
  expect_zeros([](const Tensor& P, const Dim&) {
    const Index low = load_index(P(0)), high = load_index(P(1));
    return std::pair(low, high);
  });
}

}  // namespace
}  // namespace tilewright
