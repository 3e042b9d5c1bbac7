#include "analysis/interference.h"

#include <gtest/gtest.h>

#include "passes/pass_case.h"

namespace tilewright::analysis {
namespace {

// Two views, then the operations of a role.
std::string role(const std::string& operations) {
  return test::role_kernel(
      "    %10: i32 = constant {value = 0}\n    %11: i32 = constant {value = 64}\n"
      "    %12: view<bf16, 64x64> = view %3, %10, %10 {column = 0, transposed = 0}\n"
      "    %13: f32 = constant {value = 2.0}\n"
      "    %14: tile<f32, 64x64> = splat %13\n" +
      operations);
}

class Role {
 public:
  explicit Role(const std::string& operations)
      : kernel_(test::parsed(role(operations))),
        interference_(kernel_, kernel_.body.body.back().blocks[0]) {}
  // The result of the n-th operation of its kind.
  ir::ValueId result(ir::Op op, int n = 0) const {
    ir::ValueId found = ir::kNoValue;
    ir::for_each(kernel_.body, [&](const ir::Operation& o) {
      if (o.op == op && n-- == 0) found = o.results[0];
    });
    return found;
  }
  bool between(ir::ValueId a, ir::ValueId b) const {
    EXPECT_EQ(interference_.between(a, b), interference_.between(b, a));
    return interference_.between(a, b);
  }

 private:
  ir::Kernel kernel_;
  Interference interference_;
};

const std::string kStore = "    store %1, %20, %10, %10, %11, %11 {sizes = [64, 64]}\n";

TEST(InterferenceTest, ALastUseLeavesItsPlace) {
  const Role r("    %15: tile<f32, 64x64> = exp2 %14\n    %20: tile<f32, 64x64> = neg %15\n" +
               kStore);
  EXPECT_FALSE(r.between(r.result(ir::Op::splat), r.result(ir::Op::exp2)));
  EXPECT_FALSE(r.between(r.result(ir::Op::exp2), r.result(ir::Op::neg)));
}

TEST(InterferenceTest, ALaterUseKeepsIt) {
  const Role r(
      "    %15: tile<f32, 64x64> = exp2 %14\n"
      "    %20: tile<f32, 64x64> = add %15, %14\n" +
      kStore);
  EXPECT_TRUE(r.between(r.result(ir::Op::splat), r.result(ir::Op::exp2)));
  EXPECT_FALSE(r.between(r.result(ir::Op::splat), r.result(ir::Op::add)));
}

TEST(InterferenceTest, AnAccumulatorContinuesInPlace) {
  const Role r(
      "    %15: pending<f32, 64x64> = wgmma %12, %12, %14\n"
      "    %20: tile<f32, 64x64> = wait %15\n" +
      kStore);
  EXPECT_FALSE(r.between(r.result(ir::Op::splat), r.result(ir::Op::wgmma)));
  EXPECT_FALSE(r.between(r.result(ir::Op::wgmma), r.result(ir::Op::wait)));
}

// Both are there at once, whichever branch has made them.
TEST(InterferenceTest, ResultsOfABranchAreApart) {
  const Role r(
      "    %15: bool = lt %10, %11\n"
      "    %16: tile<f32, 64x64>, %17: tile<f32, 64x64> = if_then %15 () {\n"
      "      %18: tile<f32, 64x64> = exp2 %14\n"
      "      yield %18, %14\n    } () {\n"
      "      %19: tile<f32, 64x64> = neg %14\n"
      "      yield %14, %19\n    }\n"
      "    %20: tile<f32, 64x64> = add %16, %17\n" +
      kStore);
  const ir::ValueId first = r.result(ir::Op::if_then);
  EXPECT_TRUE(r.between(first, first + 1));
}

TEST(InterferenceTest, ARunningProductKeepsItsOperands) {
  const Role r(
      "    %15: tile<bf16, 64x64> = cast %14\n"
      "    %16: pending<f32, 64x64> = wgmma %15, %12\n"
      "    %17: tile<f32, 64x64> = exp2 %14\n"
      "    %18: tile<bf16, 64x64> = cast %17\n"
      "    %19: tile<f32, 64x64> = wait %16\n"
      "    %21: tile<f32, 64x64> = cast %18\n"
      "    %20: tile<f32, 64x64> = add %19, %21\n" +
      kStore);
  const ir::ValueId operand = r.result(ir::Op::cast), other = r.result(ir::Op::cast, 1);
  EXPECT_TRUE(r.between(operand, other)) << "made before the product is waited for";
  EXPECT_TRUE(r.between(operand, r.result(ir::Op::wgmma)));
  EXPECT_FALSE(r.between(operand, r.result(ir::Op::add))) << "made behind the wait";
}

// Retiring waits for the product, and so for its operands, as a wait does.
TEST(InterferenceTest, ARetiredProductKeepsItsOperands) {
  const Role r(
      "    %15: tile<bf16, 64x64> = cast %14\n"
      "    %16: pending<f32, 64x64> = wgmma %15, %12\n"
      "    %17: tile<f32, 64x64> = exp2 %14\n"
      "    %18: tile<bf16, 64x64> = cast %17\n"
      "    retire %16\n"
      "    %20: tile<f32, 64x64> = cast %18\n" +
      kStore);
  EXPECT_TRUE(r.between(r.result(ir::Op::cast), r.result(ir::Op::cast, 1)));
  EXPECT_FALSE(r.between(r.result(ir::Op::cast), r.result(ir::Op::cast, 2)));
}

// A product that adds to one in flight is waited for with it.
TEST(InterferenceTest, AChainOfProductsKeepsTheFirstOnesOperands) {
  const Role r(
      "    %15: tile<bf16, 64x64> = cast %14\n"
      "    %16: pending<f32, 64x64> = wgmma %15, %12\n"
      "    %17: pending<f32, 64x64> = wgmma %12, %12, %16\n"
      "    %18: tile<f32, 64x64> = exp2 %14\n"
      "    %19: tile<bf16, 64x64> = cast %18\n"
      "    %21: tile<f32, 64x64> = wait %17\n"
      "    %22: tile<f32, 64x64> = cast %19\n"
      "    %20: tile<f32, 64x64> = add %21, %22\n" +
      kStore);
  EXPECT_TRUE(r.between(r.result(ir::Op::cast), r.result(ir::Op::cast, 1)));
}

// Each of several values that a loop begins with is there until it does.
TEST(InterferenceTest, ALoopBeginsWithAllOfItsValues) {
  const Role r(
      "    %15: tile<f32, 64x64> = exp2 %14\n"
      "    %16: tile<f32, 64x64> = neg %14\n"
      "    %20: tile<f32, 64x64>, %17: tile<f32, 64x64> = for_loop %10, %11, %11, %16, %15 "
      "(%18: i32, %19: tile<f32, 64x64>, %21: tile<f32, 64x64>) {\n"
      "      yield %21, %19\n    }\n" +
      kStore);
  EXPECT_TRUE(r.between(r.result(ir::Op::exp2), r.result(ir::Op::neg)));
}

TEST(InterferenceTest, ALoopKeepsWhatItsNextRoundReads) {
  const Role r(
      "    %15: tile<f32, 64x64> = exp2 %14\n"
      "    %20: tile<f32, 64x64> = for_loop %10, %11, %11, %14 "
      "(%16: i32, %17: tile<f32, 64x64>) {\n"
      "      %18: tile<f32, 64x64> = mul %17, %15\n"
      "      %19: tile<f32, 64x64> = neg %18\n      yield %19\n    }\n" +
      kStore);
  const ir::ValueId factor = r.result(ir::Op::exp2);
  EXPECT_TRUE(r.between(factor, r.result(ir::Op::mul)));
  EXPECT_TRUE(r.between(factor, r.result(ir::Op::neg)));
  EXPECT_FALSE(r.between(r.result(ir::Op::mul), r.result(ir::Op::neg)));
}

}  // namespace
}  // namespace tilewright::analysis
