#include "passes/issue_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "target/target.h"
#include "tilewright/kernel.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;

// Two products of loaded tiles, and two sums: one of what is made from the first of them alone,
// written last, and one of what is made from both.
ir::Kernel gradients(int rows, int columns, int depth) {
  Kernel kernel("gradients");
  const Dim keys = kernel.dim("keys", multiple_of(rows)), queries = kernel.dim("queries");
  const Tensor K = kernel.in("K", bf16, {keys, depth}), V = kernel.in("V", bf16, {keys, depth});
  const Tensor Q = kernel.in("Q", bf16, {queries, depth}),
               G = kernel.in("G", bf16, {queries, depth});
  const Tensor X = kernel.out("X", f32, {keys, depth}), Y = kernel.out("Y", f32, {keys, depth});
  const auto [x] = kernel.grid(keys / rows);
  const Block own = keys.block(x, rows);
  const Tile k = load(K(own, all)), v = load(V(own, all));
  Var of_both{zeros({own, depth})}, of_first{zeros({own, depth})};
  for (Index i : range(ceil_div(queries, columns))) {
    const Block block(i * columns, columns, i * columns + columns);
    const Tile q = load(Q(block, all)), g = load(G(block, all));
    const Tile p = exp2(dot(k, q.T()));
    of_both = dot((p * dot(v, g.T())).cast(bf16), q, of_both);
    of_first = dot(p.cast(bf16), g, of_first);
  }
  store(X(own, all), of_both);
  store(Y(own, all), of_first);
  ir::Kernel traced = kernel.finish();
  traced.target = ir::default_target();
  simplify_kernel(traced);
  return traced;
}

// What matters of the loop's order: "K" and "V" are the products of these, "first" and "both" the
// sums, "exp2" what is made from the first product.
std::vector<std::string> order_of(const ir::Kernel& kernel) {
  std::vector<std::string> order;
  ir::for_each(kernel.body, [&](const Operation& loop) {
    if (loop.op != Op::for_loop) return;
    std::vector<ir::ValueId> products;
    for (const Operation& o : loop.blocks[0].body) {
      if (o.op == Op::exp2) order.emplace_back("exp2");
      if (o.op != Op::dot) continue;
      const bool is_sum = o.operands.size() == 3;
      if (is_sum) {
        const std::vector<ir::ValueId>& sums = loop.blocks[0].arguments;
        order.emplace_back(o.operands[2] == sums[1] ? "both" : "first");
      } else {
        order.emplace_back(products.empty() ? "K" : "V");
        products.push_back(o.results[0]);
      }
    }
  });
  return order;
}

using Words = std::vector<std::string>;

TEST(IssueProducts, ThoseOfLoadsFirstThenWhatWaitsForTheLeast) {
  ir::Kernel kernel = gradients(128, 64, 64);
  ASSERT_EQ(order_of(kernel), (Words{"K", "exp2", "V", "both", "first"}));
  EXPECT_EQ(issue_products(kernel), 1);
  EXPECT_EQ(order_of(kernel), (Words{"K", "V", "exp2", "first", "both"}));
  // Nothing is left to bring forward.
  EXPECT_EQ(issue_products(kernel), 0);
}

// 240 registers of a thread hold sums of 64, two products of 64 and no operand of 32 beside them.
TEST(IssueProducts, SumsKeepTheirOrderWhereOperandsTakeTooManyRegisters) {
  ir::Kernel kernel = gradients(128, 128, 64);
  EXPECT_EQ(issue_products(kernel), 1);
  EXPECT_EQ(order_of(kernel), (Words{"K", "V", "exp2", "both", "first"}));
}

TEST(IssueProducts, NothingChangesWhereTwoProductsTakeTooManyRegisters) {
  ir::Kernel kernel = gradients(128, 128, 128);
  const Words before = order_of(kernel);
  EXPECT_EQ(issue_products(kernel), 0);
  EXPECT_EQ(order_of(kernel), before);
  // Unless the author asks for it.
  kernel.schedule.overlap = true;
  EXPECT_EQ(issue_products(kernel), 1);
  EXPECT_EQ(order_of(kernel), (Words{"K", "V", "exp2", "first", "both"}));
}

// 160 registers are left where three warpgroups compute.
TEST(IssueProducts, MoreWarpgroupsHaveFewerRegisters) {
  ir::Kernel two = gradients(128, 64, 64), three = gradients(192, 64, 64);
  EXPECT_EQ(issue_products(two), 1);
  EXPECT_EQ(issue_products(three), 1);
  EXPECT_EQ(order_of(two).at(3), "first");
  EXPECT_EQ(order_of(three).at(3), "both");
}

// What a product is made from may be stored: stores keep their order, and stand in nobody's way.
TEST(IssueProducts, StoresKeepTheirOrder) {
  Kernel kernel("stores");
  const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {256, 64});
  const Tensor X = kernel.out("X", f32, {4, 64, 64}), Y = kernel.out("Y", f32, {4, 64, 64});
  kernel.grid(1);
  const Tile a = load(A(all, all));
  for (Index i : range(4)) {
    const Tile b = load(B(Block(i * 64, 64, i * 64 + 64), all));
    store(X(i, all, all), dot(a, b.T()));
    store(Y(i, all, all), dot(a, b));
  }
  ir::Kernel traced = kernel.finish();
  traced.target = ir::default_target();
  simplify_kernel(traced);
  EXPECT_EQ(issue_products(traced), 1);
  Words order;
  ir::for_each(traced.body, [&](const Operation& o) {
    if (o.op == Op::dot) order.emplace_back("dot");
    if (o.op == Op::store) order.push_back(traced.parameter_of(o.operands[0])->name);
  });
  EXPECT_EQ(order, (Words{"dot", "dot", "X", "Y"}));
}

}  // namespace
}  // namespace tilewright::passes
