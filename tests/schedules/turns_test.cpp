#include <gtest/gtest.h>

#include "compiler/compile_to_machine.h"
#include "passes/pipeline.h"
#include "schedules/two_ways.h"
#include "schedules/warpgroups.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

// Warpgroups that compute what their products read from registers issue these in turn.
namespace tilewright {
namespace {

// Products of X * 2 and W: 64 rows for each warpgroup.
Kernel doubled(int groups, bool in_condition = false) {
  Kernel kernel("doubled");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {64, k});
  const Tensor Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 64 * groups));
  const Block rows = m.block(i, 64 * groups);
  Var sum{zeros({rows, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile a = (load(X(rows, depth)).cast(f32) * 2).cast(bf16);
    const Tile w = load(W(all, depth));
    const auto add = [&] { sum = dot(a, w.T(), sum); };
    if (in_condition) {
      when(any(a != 0), add);
    } else {
      add();
    }
  }
  store(Y(rows, all), sum);
  return kernel;
}

// Products of the lower triangle of X and W. The iterations in which the mask cuts X are others for
// each warpgroup, and only in these is X computed rather than loaded.
Kernel triangle() {
  Kernel kernel("triangle");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {64, k});
  const Tensor Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  Var sum{zeros({rows, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile x = where(depth.as_row() <= rows.as_column(), load(X(rows, depth)), 0);
    sum = sum + dot(x, load(W(all, depth)).T());
  }
  store(Y(rows, all), sum);
  return kernel;
}

// Products of W and of what is computed from no load.
Kernel numbered() {
  Kernel kernel("numbered");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor W = kernel.in("W", bf16, {64, k});
  const Tensor Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  Var sum{zeros({rows, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile numbers = zeros({rows, 64}) + depth.as_row().cast(f32);
    sum = dot(numbers.cast(bf16), load(W(all, depth)).T(), sum);
  }
  store(Y(rows, all), sum);
  return kernel;
}

int arrivals(const Kernel& kernel) {
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  int count = 0;
  ir::for_each(machine.body,
               [&](const ir::Operation& o) { count += o.op == ir::Op::named_arrive; });
  return count;
}

TEST(Turns, OfProductsOfWhatIsComputedFromLoads) {
  EXPECT_GT(arrivals(doubled(2)), 0);
  EXPECT_GT(arrivals(doubled(3)), 0);
  // Nobody to take turns with.
  EXPECT_EQ(arrivals(doubled(1)), 0);
  // Whether there is a product at all is decided while the kernel runs.
  EXPECT_EQ(arrivals(doubled(2, true)), 0);
  // A warpgroup that has no such iteration would keep the others waiting.
  EXPECT_EQ(arrivals(triangle()), 0);
  // It does not wait for a load.
  EXPECT_EQ(arrivals(numbered()), 0);
  // Operands that lie in shared memory, or that wait for another product.
  EXPECT_EQ(arrivals(kernels::gemm({})), 0);
  EXPECT_EQ(arrivals(kernels::attention_forward({.dim = 64})), 0);
}

TEST(Turns, EndWhereTheyBegan) {
  const std::int64_t m = 500, k = 200;
  for (const int groups : {2, 3}) {
    test::expect_two_ways(
        doubled(groups),
        {HostTensor::random_normal(bf16, {m, k}, 1), HostTensor::random_normal(bf16, {64, k}, 2),
         HostTensor::poisoned(bf16, {m, 64})},
        2, 0.01);
  }
}

}  // namespace
}  // namespace tilewright
