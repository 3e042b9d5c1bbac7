#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/text.h"
#include "passes/explicit_kernel.h"
#include "simulator/interpreter.h"

namespace tilewright::passes {
namespace {

// After every pass the text reads back as the same kernel.
void expect_round_trips(const ir::Kernel& kernel, void (*run)(ir::Kernel&, const PassObserver&)) {
  ir::Kernel lowered = kernel;
  std::set<std::string> names;
  run(lowered, [&](std::string_view name, const ir::Kernel& now, double, bool) {
    EXPECT_TRUE(names.insert(std::string(name)).second) << name << " names two passes";
    const std::string text = ir::to_text(now);
    const ir::Kernel again = ir::parse_text(text, "round_trip.tw");
    EXPECT_TRUE(ir::equal(now, again)) << "after " << name;
    EXPECT_EQ(ir::to_text(again), text) << "after " << name;
  });
  EXPECT_FALSE(names.empty());
}

int operations(const ir::Kernel& kernel) {
  int count = 0;
  ir::for_each(kernel.body, [&](const ir::Operation&) { ++count; });
  return count;
}

// A second run finds nothing more to remove.
void expect_settled(ir::Kernel kernel) {
  simplify_kernel(kernel);
  const ir::Kernel once = kernel;
  simplify_kernel(kernel);
  EXPECT_EQ(operations(once), operations(kernel)) << ir::to_text(once) << ir::to_text(kernel);
}

// Y = rows of X, normalised, with loops, conditions and what the passes may move or merge.
Kernel normalised_rows() {
  Kernel kernel("normalised_rows");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor S = kernel.in("S", f32, {rows, 1});
  const Tensor Y = kernel.inout("Y", f32, {rows, columns});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block block = rows.block(x, 16);
  Var sum{zeros({block, 1})}, largest{full({block, 1}, -INFINITY)}, unused{zeros({block, 1})};
  for (Block part : blocks(columns, 32)) {
    const Tile tile = load(X(block, part));
    const Tile scaled = tile * load(S(block, all)) + tile * load(S(block, all));
    sum = sum + reduce_sum(scaled * scaled, 1);
    largest = max(largest, reduce_max(scaled, 1));
    unused = unused + reduce_min(scaled, 1);
  }
  when(
      x > 0, [&] { sum = sum * 2; }, [&] { largest = largest - 1; });
  for (Block part : blocks(columns, 32)) {
    store(Y(block, part), (load(X(block, part)) + load(Y(block, part))) * rsqrt(sum + 1) - largest);
  }
  return kernel;
}

HostTensor result_of(const ir::Kernel& kernel, std::int64_t rows, std::int64_t columns) {
  HostTensor x = HostTensor::random_normal(f32, {rows, columns}, 1);
  HostTensor s = HostTensor::random_normal(f32, {rows, 1}, 2);
  HostTensor y = HostTensor::random_normal(f32, {rows, columns}, 3);
  Arguments arguments;
  arguments.tensors = {test::argument("X", x), test::argument("S", s), test::argument("Y", y)};
  simulator::interpret(kernel, arguments);
  return y;
}

TEST(PipelineTest, SimplificationKeepsEveryBit) {
  const Kernel kernel = normalised_rows();
  const ir::Kernel before = kernel.finish();
  ir::Kernel after = before;
  std::size_t changes = 0;
  simplify_kernel(after, [&](std::string_view, const ir::Kernel& now, double, bool changed) {
    changes += changed;
    for (const auto& [rows, columns] : {std::pair{1, 1}, {16, 32}, {40, 100}, {5, 0}}) {
      EXPECT_TRUE(result_of(before, rows, columns) == result_of(now, rows, columns));
    }
  });
  EXPECT_GE(changes, 4u);
}

TEST(PipelineTest, TextRoundTripsAfterEveryPassOfTheTileForm) {
  const Kernel kernel = normalised_rows();
  expect_round_trips(kernel.finish(), simplify_kernel);
  expect_settled(kernel.finish());
}

TEST(PipelineTest, TextRoundTripsAfterEveryPassToTheMachine) {
  test::ExplicitKernel t(3);
  const ir::Kernel kernel = t.trace([&] {
    Var sum{zeros({64, 64})}, rows{zeros({64, 1})};
    for (Index i : range(3)) {
      (void)i;
      const Slot slot = t.ring.consume();
      sum = wait(t.product(slot, sum));
      rows = rows + reduce_sum(sum, 1);
      t.ring.release(slot);
    }
    t.save(sum * rows);
  });
  expect_round_trips(kernel, lower_to_machine);
  expect_settled(kernel);
}

TEST(PipelineTest, SaysWhatChanged) {
  const Kernel source = normalised_rows();
  ir::Kernel kernel = source.finish(), before = kernel;
  simplify_kernel(
      kernel, [&](std::string_view name, const ir::Kernel& now, double milliseconds, bool changed) {
        EXPECT_EQ(changed, !ir::equal(before, now)) << name;
        EXPECT_GE(milliseconds, 0);
        before = now;
      });
}

}  // namespace
}  // namespace tilewright::passes
