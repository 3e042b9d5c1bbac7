#include "analysis/linear.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/definitions.h"
#include "ir/text.h"

namespace tilewright::analysis {
namespace {

// %1 and %2 are scalars, a loop's index is %8. Own rows are %5 to %6 - 1 of 64.
class LinearTest : public ::testing::Test {
 protected:
  void trace(const std::string& tiles) {
    kernel_ = ir::parse_text(
        "kernel \"linear\" tile\nout Y: f32[64, 64] = %0\ngrid (4, 4)\n"
        "body (%1: i32, %2: i32) {\n"
        "  %3: i32 = constant {value = 0}\n  %4: i32 = constant {value = 1}\n"
        "  %5: i32 = add %1, %4\n  %6: i32 = add %2, %4\n  %7: i32 = constant {value = 9}\n"
        "  for_loop %3, %7, %4 (%8: i32) {\n" +
            tiles + "    yield\n  }\n}\n",
        "linear.tw");
    definitions_ = definitions(kernel_);
    ir::for_each(kernel_.body, [&](const ir::Operation& o) {
      if (o.op == ir::Op::for_loop) loop_ = &o;
    });
  }
  LinearFacts facts() const { return {kernel_, definitions_, {64, 5, 6}, *loop_}; }

  ir::Kernel kernel_;
  std::vector<const ir::Operation*> definitions_;
  const ir::Operation* loop_ = nullptr;
};

void expect_linear(const Linear& found, std::int64_t constant, std::int64_t per_index,
                   const std::map<ir::ValueId, std::int64_t>& values) {
  EXPECT_EQ(found.constant, constant);
  EXPECT_EQ(found.per_index, per_index);
  EXPECT_EQ(found.values, values);
}

// Of rows less columns: the least is the first own row less the last column.
TEST_F(LinearTest, DifferencesOfRowsAndColumns) {
  trace(R"(
    %9: tile<i32, 64x1> = iota {axis = 0}
    %10: tile<i32, 1x32> = iota {axis = 1}
    %11: tile<i32, 64x32> = sub %9, %10
    %12: tile<i32, 64x32> = splat %8
    %13: tile<bool, 64x32> = le %12, %11
)");
  const auto all = facts().all_true(13);
  ASSERT_TRUE(all && all->size() == 1);
  expect_linear(all->front(), -31, -1, {{5, 1}});
  const auto none = facts().all_false(13);
  ASSERT_TRUE(none);
  // The index less the last own row, less no column, is more than 0.
  expect_linear(*none, 1 - 1, 1, {{6, -1}});
}

// A tile's own rows are its first axis: of one that was turned they are its columns.
TEST_F(LinearTest, RowsThatAreTurned) {
  trace(R"(
    %9: tile<i32, 64x1> = iota {axis = 0}
    %10: tile<i32, 1x64> = transpose %9 {permutation = [1, 0]}
    %11: tile<i32, 1x64> = splat %8
    %12: tile<bool, 1x64> = le %11, %10
    %13: tile<i32, 64x1> = transpose %10 {permutation = [1, 0]}
    %14: tile<i32, 64x1> = splat %8
    %15: tile<bool, 64x1> = le %14, %13
)");
  const auto turned = facts().all_true(12), back = facts().all_true(15);
  ASSERT_TRUE(turned && back);
  expect_linear(turned->front(), 0, -1, {});
  expect_linear(back->front(), 0, -1, {{5, 1}});
}

// Of three axes rows that have left stay away.
TEST_F(LinearTest, RowsOfThreeAxes) {
  trace(R"(
    %9: tile<i32, 64x1x1> = iota {axis = 0}
    %10: tile<i32, 1x64x1> = transpose %9 {permutation = [1, 0, 2]}
    %11: tile<i32, 64x1x1> = transpose %10 {permutation = [1, 0, 2]}
    %12: tile<i32, 64x1x1> = splat %8
    %13: tile<bool, 64x1x1> = le %12, %11
    %14: tile<i32, 64x1x1> = transpose %9 {permutation = [0, 2, 1]}
    %15: tile<bool, 64x1x1> = le %12, %14
)");
  const auto away = facts().all_true(13), kept = facts().all_true(15);
  ASSERT_TRUE(away && kept);
  expect_linear(away->front(), 0, -1, {});
  expect_linear(kept->front(), 0, -1, {{5, 1}});
}

}  // namespace
}  // namespace tilewright::analysis
