#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernels/execution.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

// The library's kernels through the passes.
namespace tilewright::kernels {
namespace {

std::vector<Attention> variants() {
  Attention full, causal, windowed;
  full.dim = full.dim_v = 128;
  causal.causal = true;
  causal.kv_heads = 2;
  windowed.causal = true;
  windowed.window = 200;
  return {full, causal, windowed};
}

void expect_round_trips(ir::Kernel kernel, void (*run)(ir::Kernel&, const passes::PassObserver&)) {
  run(kernel, [](std::string_view name, const ir::Kernel& now, double, bool) {
    const std::string text = ir::to_text(now);
    const ir::Kernel again = ir::parse_text(text, "round_trip.tw");
    ASSERT_TRUE(ir::equal(now, again)) << "after " << name;
    ASSERT_EQ(ir::to_text(again), text) << "after " << name;
  });
}

TEST(LoweringTest, TextRoundTripsAfterEveryPass) {
  expect_round_trips(gemm({}).finish(), passes::simplify_kernel);
  expect_round_trips(gemm_sm90({}).finish(), passes::lower_to_machine);
  for (const Attention& a : variants()) {
    expect_round_trips(attention_forward(a).finish(), passes::simplify_kernel);
    expect_round_trips(attention_forward_sm90(a).finish(), passes::lower_to_machine);
  }
}

// Copies of whole register arrays inside loops; a slice is a copy from an offset.
int copies_in_loops(const ir::Block& block, bool in_loop = false) {
  int count = 0;
  for (const ir::Operation& o : block.body) {
    count += in_loop && o.op == ir::Op::copy && !o.attributes.has(ir::Key::offset);
    for (const ir::Block& inner : o.blocks) {
      count += copies_in_loops(inner, in_loop || o.op == ir::Op::for_loop);
    }
  }
  return count;
}

TEST(LoweringTest, AccumulatorsStayInPlace) {
  const Kernel product = gemm_sm90({});
  ir::Kernel machine = product.finish();
  passes::lower_to_machine(machine);
  EXPECT_EQ(copies_in_loops(machine.body), 0) << ir::to_text(machine);
}

// The passes of the tile form change no bit of what a kernel computes.
TEST(LoweringTest, SimplificationKeepsEveryBit) {
  const std::vector<std::int64_t> q{1, 70, 8, 64}, k{1, 90, 2, 64};
  test::Padded Q = test::Padded::normal(bf16, q, 1), K = test::Padded::normal(bf16, k, 2);
  test::Padded V = test::Padded::normal(bf16, k, 3);
  Attention a;
  a.causal = true;
  a.kv_heads = 2;
  const Kernel kernel = attention_forward(a);
  ir::Kernel simplified = kernel.finish();
  passes::simplify_kernel(simplified);
  EXPECT_FALSE(ir::equal(simplified, kernel.finish()));
  const auto run = [&](const ir::Kernel& form, test::Padded& O, test::Padded& LSE) {
    Arguments arguments;
    arguments.tensors = {Q.argument("Q"), K.argument("K"), V.argument("V"), O.argument("O"),
                         LSE.argument("LSE")};
    simulator::interpret(form, arguments);
  };
  test::Padded before(bf16, q), after(bf16, q), lse_before(f32, {1, 8, 70}),
      lse_after(f32, {1, 8, 70});
  run(kernel.finish(), before, lse_before);
  run(simplified, after, lse_after);
  before.each([&](const auto& index) { ASSERT_EQ(before.at(index), after.at(index)); });
  lse_before.each([&](const auto& index) { ASSERT_EQ(lse_before.at(index), lse_after.at(index)); });
}

}  // namespace
}  // namespace tilewright::kernels
