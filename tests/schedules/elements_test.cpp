#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "schedules/two_ways.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Tiles of no axis: one element that indices alone choose.
namespace tilewright {
namespace {

using test::expect_near;

// What is carried is scaled by one element of each turn, and what is left of it stored as one.
Kernel decays() {
  Kernel kernel("decays");
  const Dim steps = kernel.dim("steps"), heads = kernel.dim("heads");
  const Tensor rate = kernel.in("rate", f32, {steps, heads});
  const Tensor state = kernel.inout("state", f32, {heads, 64});
  const Tensor last = kernel.out("last", bf16, {heads}), sum = kernel.out("sum", f32, {heads});
  const auto [head] = kernel.grid(heads);
  Var carried{load(state(head, all))}, product{full({}, 1)};
  for (Index step : range(steps)) {
    const Tile factor = exp(-load(rate(step, head)));
    carried = factor.reshape({1}) * carried;
    product = product * factor;
  }
  const Tile end = carried, whole = product;
  store(state(head, all), end);
  store(last(head), whole.cast(bf16));
  store(sum(head), reduce_sum(end, 0).reshape({}));
  return kernel;
}

void check_decays(const std::string& target, std::int64_t steps, std::int64_t heads) {
  SCOPED_TRACE(testing::Message() << target << ", " << steps << " steps, " << heads << " heads");
  HostTensor rate = HostTensor::random_normal(f32, {steps, heads}, 1);
  HostTensor state = HostTensor::random_normal(f32, {heads, 64}, 2);
  HostTensor last = HostTensor::poisoned(bf16, {heads}), sum = HostTensor::poisoned(f32, {heads});
  std::vector<double> products(heads, 1), states, sums(heads, 0);
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t step = 0; step < steps; ++step) {
      products[head] *= std::exp(-rate.at({step, head}));
    }
    for (int i = 0; i < 64; ++i) {
      states.push_back(state.at({head, i}) * products[head]);
      sums[head] += states.back();
    }
  }
  compile(decays(), target).run({ref(rate), ref(state), ref(last), ref(sum)});
  expect_near(state, HostTensor::from_values(f32, {heads, 64}, states), 2e-5);
  expect_near(last, HostTensor::from_values(bf16, {heads}, products), 1e-2);
  expect_near(sum, HostTensor::from_values(f32, {heads}, sums), 2e-5);
}

TEST(Elements, AreLoadedComputedAndStored) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "passes:sm_90a", "sim:sm_100a"}) {
    check_decays(target, 3, 5);
    check_decays(target, 0, 2);
    check_decays(target, 4, 0);
  }
}

// One factor of a product's result.
TEST(Elements, ScaleProducts) {
  Kernel kernel("scaled_product");
  const Dim m = kernel.dim("m"), batch = kernel.dim("batch");
  const Tensor A = kernel.in("A", bf16, {batch, m, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor scale = kernel.in("scale", f32, {batch});
  const Tensor C = kernel.out("C", f32, {batch, m, 64});
  const auto [x, b] = kernel.grid(ceil_div(m, 64), batch);
  const Block rows = m.block(x, 64);
  const Tile product = dot(load(A(b, rows, all)), load(B(all, all)));
  store(C(b, rows, all), product * load(scale(b)).reshape({1, 1}));
  const HostTensor a = HostTensor::random_normal(bf16, {2, 70, 64}, 1),
                   w = HostTensor::random_normal(bf16, {64, 64}, 2),
                   s = HostTensor::random_normal(f32, {2}, 3);
  HostTensor wanted = HostTensor::zeros(f32, {2, 70, 64});
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    double sum = 0;
    for (int k = 0; k < 64; ++k) sum += a.flat(i / 64 * 64 + k) * w.flat(k * 64 + i % 64);
    wanted.set_flat(i, sum * s.flat(i / (70 * 64)));
  }
  for (const char* target : {"sim:sm_90a", "passes:sm_90a", "sim:sm_100a"}) {
    SCOPED_TRACE(target);
    HostTensor in = a, by = w, scales = s, c = HostTensor::poisoned(f32, {2, 70, 64});
    compile(kernel, target).run({ref(in), ref(by), ref(scales), ref(c)});
    expect_near(c, wanted, 2e-5);
  }
}

TEST(Elements, OfAnExplicitKernel) {
  Kernel kernel("element");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n}), Y = kernel.out("Y", f32, {n});
  kernel.ctas(n);
  kernel.roles({role("one", warps(1), registers(24),
                     [&] { store(Y(cta_index()), load(X(cta_index())) * 2); })});
  HostTensor x = HostTensor::random_normal(f32, {5}, 1), y = HostTensor::poisoned(f32, {5});
  compile(kernel, "sim:sm_90a").run({ref(x), ref(y)});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(y.flat(i), 2 * x.flat(i));
}

// An index outside of its axis is a fault, as of every access.
TEST(Elements, OutsideAreFaults) {
  Kernel kernel("outside");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n}), Y = kernel.out("Y", f32, {n});
  const auto [x] = kernel.grid(n);
  store(Y(x), load(X(x + 1)));
  HostTensor in = HostTensor::random_normal(f32, {3}, 1), out = HostTensor::poisoned(f32, {3});
  try {
    compile(kernel, "sim:sm_90a").run({ref(in), ref(out)});
    FAIL() << "the index 3 of 3 was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("index 3 on axis 0 of X"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tilewright
