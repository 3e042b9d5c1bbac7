#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "analysis/data_dependence.h"
#include "analysis/loaded_integers.h"
#include "analysis/nonnegative.h"
#include "ir/text.h"

// What is known of integers: whether they are negative, depend on data, or come from a launch.
// Values are numbered as in the texts.
namespace tilewright::analysis {
namespace {

ir::Kernel kernel(const std::string& operations) {
  return ir::parse_text(
      "kernel \"integers\" tile\nin L: i32[64] = %0\nscalar s: i32 = %1\ngrid (1)\n"
      "body (%2: i32) {\n  %3: i32 = constant {value = 3}\n  %4: i32 = constant {value = -1}\n" +
          operations + "}\n",
      "integers.tw");
}

TEST(Nonnegative, FollowsFromWhatFunctionsDo) {
  const ir::Kernel made = kernel(R"(  %5: i32 = max %3, %4
  %6: i32 = max %4, %3
  %7: i32 = max %4, %4
  %8: i32 = min %3, %4
  %9: i32 = sub %3, %3
  %10: i32 = abs %4
  %11: i32 = mod %4, %3
  %12: i32 = mod %3, %4
  %13: i32 = div %3, %4
  %14: i32 = bit_and %4, %3
  %15: i32 = bit_and %4, %4
  %16: i32 = bit_or %3, %4
  %17: i32 = shift_right %3, %3
  %18: i32 = shift_left %3, %3
  %19: bool = lt %3, %4
  %20: i32 = select %19, %3, %3
  %21: i32 = select %19, %4, %3
  %22: i32 = select %19, %3, %4
  %23: i32 = add %2, %3
  %24: i32 = mul %2, %1
)");
  const std::vector<bool> known = nonnegative_values(made, nullptr);
  EXPECT_TRUE(known[2]) << "the grid's index";
  EXPECT_TRUE(known[3]);
  EXPECT_FALSE(known[4]);
  EXPECT_TRUE(known[5] && known[6]) << "one of a maximum is enough";
  EXPECT_FALSE(known[7]);
  EXPECT_FALSE(known[8]) << "both of a minimum are needed";
  EXPECT_FALSE(known[9]) << "a difference may be anything";
  EXPECT_FALSE(known[10]) << "the lowest number has no opposite";
  EXPECT_TRUE(known[11]) << "a remainder has the divisor's sign";
  EXPECT_FALSE(known[12]);
  EXPECT_FALSE(known[13]);
  EXPECT_TRUE(known[14]) << "the sign bit is not in both";
  EXPECT_FALSE(known[15]);
  EXPECT_FALSE(known[16]);
  EXPECT_TRUE(known[17]);
  EXPECT_FALSE(known[18]) << "bits come to the sign";
  EXPECT_TRUE(known[20]);
  EXPECT_FALSE(known[21] || known[22]) << "either may be taken";
  EXPECT_TRUE(known[23]);
  EXPECT_FALSE(known[24]) << "a scalar may be negative";
  const std::vector<bool> given =
      nonnegative_values(made, [](ir::ValueId value) { return value == 1; });
  EXPECT_TRUE(given[24]);
}

TEST(Nonnegative, GoesAroundLoops) {
  const std::vector<bool> known = nonnegative_values(kernel(R"(  %5: i32 = constant {value = 0}
  %6: i32 = constant {value = 1}
  %7: i32 = for_loop %5, %3, %6, %5 (%8: i32, %9: i32) {
    %10: i32 = add %9, %8
    yield %10
  }
  %11: i32 = for_loop %4, %3, %6, %5 (%12: i32, %13: i32) {
    %14: i32 = sub %13, %6
    yield %14
  }
)"),
                                                     nullptr);
  EXPECT_TRUE(known[8] && known[9] && known[7]);
  EXPECT_FALSE(known[12]) << "it begins below";
  EXPECT_FALSE(known[13] || known[11]) << "it becomes a difference";
}

TEST(DataDependence, IsOfWhatIsReadAndOfWhatItDecides) {
  const std::vector<bool> depends = data_dependent(kernel(R"(  %5: i32 = load_index %0, %3
  %6: i32 = add %5, %3
  %7: i32 = constant {value = 1}
  %8: i32 = for_loop %3, %6, %7, %3 (%9: i32, %10: i32) {
    yield %3
  }
  %11: i32 = for_loop %5, %3, %7, %3 (%12: i32, %13: i32) {
    yield %3
  }
  %14: i32 = for_loop %7, %3, %1, %3 (%15: i32, %16: i32) {
    yield %3
  }
  %17: i32 = for_loop %7, %3, %7, %3 (%18: i32, %19: i32) {
    %20: i32 = add %19, %5
    yield %20
  }
  %21: i32 = for_loop %7, %3, %7, %3 (%22: i32, %23: i32) {
    yield %22
  }
  %24: bool = lt %5, %3
  %25: i32 = if_then %24 () {
    yield %3
  } () {
    yield %7
  }
)"));
  EXPECT_TRUE(depends[1]) << "a scalar of the launch";
  EXPECT_FALSE(depends[2] || depends[3]);
  EXPECT_TRUE(depends[5] && depends[6]);
  EXPECT_TRUE(depends[8]) << "data say how often the loop turns";
  EXPECT_TRUE(depends[9] && depends[10]);
  EXPECT_TRUE(depends[11] && depends[12]) << "where it begins";
  EXPECT_TRUE(depends[14] && depends[15]) << "how far it steps";
  EXPECT_TRUE(depends[17] && depends[19]) << "what is carried comes from data";
  EXPECT_FALSE(depends[18]);
  EXPECT_FALSE(depends[21] || depends[22] || depends[23]);
  EXPECT_TRUE(depends[25]) << "data say which branch";
}

TEST(DataDependence, IsOfWhatALoopGoesOnWhile) {
  const std::vector<bool> depends = data_dependent(kernel(R"(  %5: bool = lt %4, %3
  %6: i32 = while_loop %5, %3 (%7: i32) {
    %8: i32 = load_index %0, %3
    %9: bool = lt %8, %3
    yield %9, %7
  }
  %10: i32 = while_loop %5, %3 (%11: i32) {
    yield %5, %11
  }
)"));
  EXPECT_TRUE(depends[6] && depends[7]);
  EXPECT_FALSE(depends[10] || depends[11]);
}

TEST(LoadedIntegers, KnowWhereAnIntegerComesFrom) {
  const ir::Kernel made = kernel(R"(  %5: i32 = load_index %0, %3
  %6: i32 = add %5, %3
  %7: i32 = add %2, %6
  %8: i32 = sub %2, %3
  %9: i32 = constant {value = 1}
  %10: i32 = for_loop %3, %5, %9, %3 (%11: i32, %12: i32) {
    %13: i32 = add %12, %1
    yield %13
  }
  %14: i32 = for_loop %9, %3, %5, %3 (%15: i32, %16: i32) {
    yield %16
  }
)");
  const LoadedIntegers integers(made);
  const auto source = [&](ir::ValueId value) {
    return integers.source(value).value_or(ir::kNoValue);
  };
  EXPECT_EQ(source(5), 5u);
  EXPECT_EQ(source(6), 5u);
  EXPECT_EQ(source(7), 5u);
  EXPECT_EQ(source(1), 1u) << "a scalar of the launch";
  EXPECT_EQ(source(8), ir::kNoValue);
  EXPECT_EQ(source(11), 5u) << "an index up to a loaded end";
  EXPECT_EQ(source(15), 5u) << "in loaded steps";
  EXPECT_EQ(source(13), 1u);
  EXPECT_EQ(source(10), 1u) << "what a loop carries on";
  EXPECT_EQ(source(14), ir::kNoValue);
  EXPECT_TRUE(integers.alone(6)) << "a number beside it decides nothing";
  EXPECT_FALSE(integers.alone(7)) << "the place in the grid does too";
}

TEST(LoadedIntegers, KnowHowFarTwoAreApart) {
  const ir::Kernel made = kernel(R"(  %5: i32 = load_index %0, %3
  %6: i32 = add %5, %3
  %7: i32 = sub %6, %4
  %8: i32 = sub %3, %5
  %9: i32 = mul %5, %3
  %10: i32 = mul %5, %3
  %11: i32 = mul %5, %4
  %12: i32 = add %9, %3
  %13: i32 = load_index %0, %3
)");
  const LoadedIntegers integers(made);
  EXPECT_EQ(integers.distance(5, 7), 4);
  EXPECT_EQ(integers.distance(7, 5), -4);
  EXPECT_EQ(integers.distance(5, 8), std::nullopt) << "twice the index lies between them";
  EXPECT_EQ(integers.distance(10, 12), 3) << "recorded twice";
  EXPECT_EQ(integers.distance(11, 12), std::nullopt) << "times another number";
  EXPECT_EQ(integers.distance(5, 13), std::nullopt) << "memory may have changed";
}

}  // namespace
}  // namespace tilewright::analysis
