#include "analysis/hidden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "analysis/definitions.h"
#include "ir/text.h"

// What tiles are where a mask hides them. Values are numbered as in the texts: %4 is loaded, %9 is
// the mask, false where an element is hidden, and %10 are scores that are -inf there.
namespace tilewright::analysis {
namespace {

constexpr ir::ValueId kLoaded = 4, kMask = 9;

ir::Kernel kernel_with_mask(const std::string& operations) {
  return ir::parse_text(
      "kernel \"hidden\" tile\nin A: f32[64, 64] = %0\ngrid (1)\nbody (%1: i32) {\n"
      "  %2: i32 = constant {value = 0}\n  %3: i32 = constant {value = 64}\n"
      "  %4: tile<f32, 64x64> = load %0, %2, %2, %3, %3 {sizes = [64, 64]}\n"
      "  %5: f32 = constant {value = -inf}\n  %6: f32 = constant {value = 0.0}\n"
      "  %7: f32 = constant {value = 1.0}\n  %8: f32 = constant {value = 2.0}\n"
      "  %9: tile<bool, 64x64> = lt %4, %8\n"
      "  %10: tile<f32, 64x64> = select %9, %4, %5\n"
      "  %11: tile<f32, 64x64> = exp2 %10\n" +
          operations + "}\n",
      "hidden.tw");
}

// What is known of the values of one kernel.
class Where {
 public:
  explicit Where(const std::string& operations, bool everywhere = false)
      : kernel_(kernel_with_mask(operations)),
        definitions_(definitions(kernel_)),
        hidden_(
            kernel_, definitions_, [](ir::ValueId value) { return value == kMask; }, everywhere) {}

  std::optional<double> number(ir::ValueId value) { return hidden_.of(value).number; }
  // Whether the value is the same as another one.
  bool is(ir::ValueId value, ir::ValueId other) {
    const Hidden::Known known = hidden_.of(value);
    return !known.number && known.same == other;
  }
  bool nothing_is_known_of(ir::ValueId value) { return is(value, value); }

 private:
  const ir::Kernel kernel_;
  const Hidden::Definitions definitions_;
  Hidden hidden_;
};

TEST(Hidden, ScoresAreMinusInfinityAndTheirWeightsZero) {
  Where values("");
  EXPECT_EQ(values.number(10), -INFINITY);
  EXPECT_EQ(values.number(11), 0);
  EXPECT_TRUE(values.nothing_is_known_of(kLoaded));
}

TEST(Hidden, WhatChangesNothingIsTheOtherOperand) {
  Where values(R"(  %12: tile<f32, 64x64> = add %11, %4
  %13: tile<f32, 64x64> = mul %4, %7
  %14: tile<f32, 64x64> = max %10, %4
  %15: tile<f32, 64x64> = sub %4, %6
  %16: tile<f32, 64x64> = max %11, %4
  %17: tile<f32, 64x64> = add %4, %7
  %18: tile<f32, 64x1> = reduce %4 {function = max, axis = 1}
  %19: tile<f32, 64x64> = add %11, %18
)");
  for (const ir::ValueId value : {12, 13, 14, 15}) EXPECT_TRUE(values.is(value, kLoaded)) << value;
  EXPECT_TRUE(values.nothing_is_known_of(16)) << "the other one may be below 0";
  EXPECT_TRUE(values.nothing_is_known_of(17));
  EXPECT_TRUE(values.nothing_is_known_of(19)) << "a row is stretched";
}

TEST(Hidden, NumbersAreCompared) {
  Where values(R"(  %12: tile<bool, 64x64> = lt %11, %6
  %13: tile<bool, 64x64> = le %11, %6
  %14: tile<bool, 64x64> = lt %4, %5
  %15: tile<bool, 64x64> = lt %10, %4
)");
  EXPECT_EQ(values.number(12), 0);
  EXPECT_EQ(values.number(13), 1);
  EXPECT_EQ(values.number(14), 0) << "nothing is below minus infinity";
  EXPECT_TRUE(values.nothing_is_known_of(15)) << "the other one may be minus infinity";
}

TEST(Hidden, ChoicesByWhatIsKnown) {
  Where values(R"(  %12: tile<bool, 64x64> = le %11, %6
  %13: tile<bool, 64x64> = lt %11, %6
  %14: tile<bool, 64x64> = lt %4, %6
  %15: tile<f32, 64x64> = select %12, %4, %5
  %16: tile<f32, 64x64> = select %13, %4, %5
  %17: tile<f32, 64x64> = mul %4, %7
  %18: tile<f32, 64x64> = select %14, %17, %4
  %19: tile<f32, 64x64> = select %14, %11, %4
  %20: tile<f32, 64x64> = select %14, %4, %11
)");
  EXPECT_TRUE(values.is(15, kLoaded));
  EXPECT_EQ(values.number(16), -INFINITY);
  EXPECT_TRUE(values.is(18, kLoaded)) << "both are the same";
  EXPECT_TRUE(values.nothing_is_known_of(19));
  EXPECT_TRUE(values.nothing_is_known_of(20));
}

TEST(Hidden, CastsKeepZerosAndInfinities) {
  Where values(R"(  %12: tile<bf16, 64x64> = cast %11
  %13: tile<bf16, 64x64> = cast %10
  %14: tile<f32, 64x64> = add %11, %8
  %15: tile<bf16, 64x64> = cast %14
)");
  EXPECT_EQ(values.number(12), 0);
  EXPECT_EQ(values.number(13), -INFINITY);
  EXPECT_EQ(values.number(14), 2);
  EXPECT_TRUE(values.nothing_is_known_of(15)) << "a cast may round";
}

// Minus infinity less a maximum is minus infinity, unless the maximum is minus infinity too: where
// it is, another number must have taken its place.
TEST(Hidden, MaximaThatAreSubtracted) {
  Where values(R"(  %12: tile<f32, 64x64> = sub %10, %4
  %13: tile<bool, 64x64> = eq %4, %5
  %14: tile<f32, 64x64> = mul %4, %8
  %15: tile<f32, 64x64> = select %13, %6, %14
  %16: tile<f32, 64x64> = sub %10, %15
  %17: tile<f32, 64x64> = mul %4, %6
  %18: tile<f32, 64x64> = select %13, %6, %17
  %19: tile<f32, 64x64> = sub %10, %18
  %20: tile<f32, 64x64> = select %13, %4, %14
  %21: tile<f32, 64x64> = sub %10, %20
)");
  EXPECT_TRUE(values.nothing_is_known_of(12));
  EXPECT_EQ(values.number(16), -INFINITY);
  EXPECT_TRUE(values.nothing_is_known_of(19)) << "minus infinity times 0 is no number";
  EXPECT_TRUE(values.nothing_is_known_of(21)) << "it takes its own place";
}

TEST(Hidden, MaximaThatALoopCarries) {
  const auto loop = [](const std::string& becomes) {
    return "  %12: i32 = constant {value = 1}\n  %13: tile<f32, 64x64> = splat %6\n"
           "  %14: tile<bool, 64x64> = eq %4, %5\n  %15: tile<f32, 64x64> = mul %4, %8\n"
           "  %16: tile<f32, 64x64> = select %14, %6, %15\n"
           "  %17: tile<f32, 64x64> = for_loop %2, %3, %12, %13 (%18: i32, %19: tile<f32, 64x64>)"
           " {\n    %20: tile<f32, 64x64> = sub %10, %19\n    yield " +
           becomes + "\n  }\n";
  };
  EXPECT_EQ(Where(loop("%16")).number(20), -INFINITY);
  EXPECT_TRUE(Where(loop("%4")).nothing_is_known_of(20)) << "what it becomes may be minus infinity";
}

// Reductions and products read elements of other places, of which all must be hidden.
TEST(Hidden, OtherPlacesCountOnlyWhereAllIsHidden) {
  const std::string operations = R"(  %12: tile<f32, 64x1> = reduce %10 {function = max, axis = 1}
  %13: tile<f32, 64x1> = reduce %11 {function = add, axis = 1}
  %14: tile<f32, 64x64> = add %11, %7
  %15: tile<f32, 64x1> = reduce %14 {function = add, axis = 1}
  %16: tile<f32, 64x1> = reduce %14 {function = max, axis = 1}
  %17: tile<bf16, 64x64> = cast %11
  %18: tile<bf16, 64x64> = cast %4
  %19: tile<f32, 64x64> = dot %17, %18
  %20: tile<f32, 64x64> = dot %18, %17
  %21: tile<f32, 64x64> = dot %17, %18, %4
  %22: tile<f32, 64x64> = dot %18, %18
)";
  Where some(operations);
  for (const ir::ValueId value : {12, 13, 19, 20, 21}) {
    EXPECT_TRUE(some.nothing_is_known_of(value)) << value;
  }
  Where all(operations, true);
  EXPECT_EQ(all.number(12), -INFINITY);
  EXPECT_EQ(all.number(13), 0);
  EXPECT_TRUE(all.nothing_is_known_of(15)) << "64 ones are no 1";
  EXPECT_EQ(all.number(16), 1);
  EXPECT_EQ(all.number(19), 0);
  EXPECT_EQ(all.number(20), 0);
  EXPECT_TRUE(all.is(21, kLoaded)) << "the sum that it adds to";
  EXPECT_TRUE(all.nothing_is_known_of(22));
}

}  // namespace
}  // namespace tilewright::analysis
