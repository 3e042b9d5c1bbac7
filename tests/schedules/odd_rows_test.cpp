#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "compiler/build.h"
#include "compiler/launch_plan.h"
#include "schedules/two_ways.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Tensors whose rows are no multiple of 16 bytes, between which TMA does not step.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRows = 150, kColumns = 100;  // of bf16: 200 bytes

// Products of A and B, with X added in every iteration: X and Y have rows of 200 bytes.
Kernel added() {
  Kernel kernel("added");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {n, 128}), B = kernel.in("B", bf16, {128, 128});
  const Tensor X = kernel.in("X", bf16, {n, kColumns}), Y = kernel.out("Y", bf16, {n, kColumns});
  const auto [i] = kernel.grid(ceil_div(n, 128));
  const Block rows = n.block(i, 128), columns = Dim(kColumns).block(0, 128);
  Var sum{zeros({rows, columns})};
  for (Block depth : blocks(128, 64)) {
    sum = dot(load(A(rows, depth)), load(B(depth, all)), sum) + load(X(rows, columns)).cast(f32);
  }
  store(Y(rows, columns), sum);
  return kernel;
}

TEST(OddRows, GoStraightBetweenMemoryAndRegisters) {
  test::expect_two_ways(added(),
                        {HostTensor::random_normal(bf16, {kRows, 128}, 1),
                         HostTensor::random_normal(bf16, {128, 128}, 2),
                         HostTensor::random_normal(bf16, {kRows, kColumns}, 3),
                         HostTensor::poisoned(bf16, {kRows, kColumns})},
                        3, 0.01);
}

// What a product reads has no other way; whether a launch pads its rows is known then.
TEST(OddRows, OfProductsAreNamedAtTheirLoad) {
  Kernel kernel("odd");
  const Tensor A = kernel.in("A", bf16, {64, kColumns}), B = kernel.in("B", bf16, {64, 128});
  const Tensor C = kernel.out("C", f32, {64, 64});
  kernel.grid(1);
  const Block depth = Dim(kColumns).block(0, 128);
  const Tile a = load(A(all, depth));
  const int line = __LINE__ - 1;
  store(C(all, all), dot(a, load(B(all, all)).T()));
  const compiler::GpuProgram program = compiler::translate(kernel.finish(), ir::default_target());
  const auto data = [](std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); };
  Arguments given;
  given.tensors = {{"A", bf16, {64, kColumns}, {kColumns, 1}, data(0x10000)},
                   {"B", bf16, {64, 128}, {128, 1}, data(0x20000)},
                   {"C", f32, {64, 64}, {64, 1}, data(0x30000)}};
  const auto plan = [&] {
    compiler::plan_launch(program.machine, program.source.parameters, given, 132);
  };
  EXPECT_THAT(test::whole_usage_error_of(plan),
              AllOf(HasSubstr("odd_rows_test.cpp:" + std::to_string(line) + ": error: tensor A"),
                    HasSubstr("the stride of axis 0 is 100 elements (200 bytes)"),
                    HasSubstr("load(A(all, depth))"), HasSubstr("A is declared at"),
                    HasSubstr("fix: pad axis 1 to 104 elements")));
  given.tensors[0].strides = {104, 1};
  EXPECT_NO_THROW(plan());
}

}  // namespace
}  // namespace tilewright
