#include <gtest/gtest.h>

#include <set>

#include "compiler/compile_to_machine.h"
#include "tilewright/kernel.h"

// What an automatic schedule records stands on the author's lines: errors, faults of the simulated
// GPU and `explain` name them.
namespace tilewright {
namespace {

std::set<int> lines_of(const ir::Kernel& machine, ir::Op op) {
  std::set<int> lines;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == op) lines.insert(o.where.line);
  });
  return lines;
}

ir::Kernel lowered(const Kernel& kernel) {
  return compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
}

TEST(Lines, OfProductsAndTheirLoads) {
  Kernel kernel("product");
  const Dim k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {64, k}), B = kernel.in("B", bf16, {64, k});
  const Tensor C = kernel.out("C", f32, {64, 64});
  kernel.grid(1);
  Var sum{zeros({64, 64})};
  const int first = __LINE__;
  for (Block depth : blocks(k, 64)) {
    const Tile a = load(A(all, depth));
    const Tile b = load(B(all, depth));
    sum = dot(a, b.T(), sum);
  }
  store(C(all, all), sum);
  const ir::Kernel machine = lowered(kernel);
  EXPECT_EQ(lines_of(machine, ir::Op::tma_load), (std::set<int>{first + 2, first + 3}));
  EXPECT_EQ(lines_of(machine, ir::Op::wgmma_ss), std::set<int>{first + 4});
  EXPECT_EQ(lines_of(machine, ir::Op::store_registers), std::set<int>{first + 6});
}

TEST(Lines, OfRows) {
  Kernel kernel("rows");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 256}), Y = kernel.out("Y", f32, {rows, 256});
  const auto [i] = kernel.grid(rows);
  const int first = __LINE__;
  for (Index turn : range(2)) {
    const Tile x = load(X(rows.block(i + turn, 1), all));
    store(Y(rows.block(i + turn, 1), all), exp(x));
  }
  const ir::Kernel machine = lowered(kernel);
  EXPECT_EQ(lines_of(machine, ir::Op::load_registers), std::set<int>{first + 2});
  EXPECT_EQ(lines_of(machine, ir::Op::store_registers), std::set<int>{first + 3});
}

}  // namespace
}  // namespace tilewright
