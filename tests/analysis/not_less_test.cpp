#include "analysis/not_less.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text.h"

namespace tilewright::analysis {
namespace {

// Of one role with the body; `dims` are those that it names. %0 is the warpgroup.
ir::Kernel kernel_of(const std::vector<std::string>& dims, const std::string& body,
                     int warpgroups = 1) {
  std::string text = "kernel \"bounds\" machine\n";
  for (const std::string& dim : dims) text += "dim " + dim + "\n";
  text += "grid (8)\nthreads " + std::to_string(128 * warpgroups) +
          "\nbody () {\n  role {name = \"only\", first_warp = 0, warps = " +
          std::to_string(4 * warpgroups) + ", registers = 64} (%0: i32) {\n" + body +
          "    yield\n  }\n}\n";
  return ir::parse_text(text, "bounds.tw");
}

// Blocks of 128 keys for 192 rows from %1 on, as masks and the automatic schedule say it.
TEST(NotLess, ProvesWhatFollowsFromHowValuesAreComputed) {
  const ir::Kernel kernel = kernel_of({"keys", "rows"}, R"(
    %1: i32 = cta_index
    %2: i32 = constant {value = 0}
    %3: i32 = constant {value = 1}
    %4: i32 = constant {value = 128}
    %5: i32 = constant {value = 192}
    %6: i32 = dim {dim = dim(rows)}
    %7: i32 = dim {dim = dim(ceil_div(keys, 128))}
    %8: i32 = dim {dim = dim((keys // 128))}
    %9: i32 = sub %6, %1
    %10: i32 = min %5, %9
    %11: i32 = add %1, %10
    %12: i32 = add %1, %5
    %13: i32 = min %6, %12
    %14: i32 = div %11, %4
    %15: i32 = div %13, %4
    %16: i32 = min %7, %15
    %17: i32 = min %16, %14
    %18: i32 = max %2, %17
    %19: i32 = max %2, %16
    %20: bool = lt %1, %6
    %21: i32 = select %20, %7, %2
    %22: bool = lt %2, %10
    %23: i32 = select %22, %21, %2
    %24: i32 = sub %9, %4
    %25: i32 = div %24, %4
    %26: i32 = div %9, %4
    %27: i32 = sub %5, %9
    %28: i32 = div %27, %4
    %29: i32 = add %26, %28
    %30: i32 = sub %3, %2
)");
  NotLess not_less(kernel);
  // min(rows, first + 192) is first + min(192, rows - first), and so are quotients of the two.
  EXPECT_TRUE(not_less.proves(11, 13));
  EXPECT_TRUE(not_less.proves(14, 15));
  EXPECT_TRUE(not_less.proves(18, 19));
  EXPECT_TRUE(not_less.proves(19, 18));
  // The last block begins with keys / 128, or there is none; a difference of 1 more is none.
  EXPECT_FALSE(not_less.proves(8, 7));
  EXPECT_TRUE(not_less.proves(8, 7, 1));
  EXPECT_TRUE(not_less.proves(7, 8));
  EXPECT_FALSE(not_less.proves(7, 8, -1));
  // Two conditions that say the same of the rows that are left.
  EXPECT_TRUE(not_less.proves(23, 21));
  EXPECT_TRUE(not_less.proves(21, 23));
  EXPECT_FALSE(not_less.proves(23, 7));
  EXPECT_TRUE(not_less.proves(7, 23));
  // (x - 128) / 128 is x / 128 - 1.
  EXPECT_TRUE(not_less.proves(25, 26, 1));
  EXPECT_FALSE(not_less.proves(25, 26));
  EXPECT_FALSE(not_less.proves(1, 6));
  // x / 128 + (192 - x) / 128 is 1 or, where both round down, 0.
  EXPECT_TRUE(not_less.proves(29, 2));
  EXPECT_FALSE(not_less.proves(29, 30));
}

// Where a bound is met exactly, and where a proof would take the wrong one of two alternatives.
TEST(NotLess, BoundsThatAreMetExactly) {
  const ir::Kernel kernel = kernel_of({"a", "b"}, R"(
    %1: i32 = dim {dim = dim(a)}
    %2: i32 = dim {dim = dim(b)}
    %3: i32 = constant {value = 0}
    %4: i32 = constant {value = 1}
    %5: bool = lt %1, %2
    %6: i32 = sub %1, %2
    %7: i32 = select %5, %3, %6
    %8: i32 = select %5, %4, %6
    %9: i32 = cta_index
    %10: i32 = sub %9, %1
    %11: i32 = sub %2, %9
    %12: i32 = min %10, %11
    %13: bool = le %12, %3
    %14: i32 = sub %3, %10
    %15: i32 = select %13, %14, %3
    %16: i32 = min %1, %2
    %17: i32 = min %2, %1
    %18: i32 = dim {dim = dim(min(a, b))}
    %19: i32 = dim {dim = dim(max(a, b))}
)");
  NotLess not_less(kernel);
  // a - b where a is not less than b: it may be 0.
  EXPECT_TRUE(not_less.proves(7, 3));
  EXPECT_FALSE(not_less.proves(8, 4));
  // A minimum that is not positive says so of one of its two alone.
  EXPECT_FALSE(not_less.proves(15, 3));
  EXPECT_TRUE(not_less.proves(16, 17));
  EXPECT_TRUE(not_less.proves(17, 16));
  // So does one of sizes, and a maximum is the greater of the two.
  for (const ir::ValueId size : {ir::ValueId{1}, ir::ValueId{2}}) {
    EXPECT_TRUE(not_less.proves(size, 18) && not_less.proves(19, size));
    EXPECT_FALSE(not_less.proves(18, size) || not_less.proves(size, 19));
  }
}

// A loop whose end lies at 2^62, and a difference below what 64 bits hold: nothing is proven.
TEST(NotLess, AProofThatOverflowsIsNone) {
  const ir::Kernel kernel = kernel_of({"a"}, R"(
    %1: i32 = constant {value = 2147483647}
    %2: i32 = mul %1, %1
    %3: i32 = constant {value = 0}
    %4: i32 = constant {value = 1}
    for_loop %3, %2, %4 (%5: i32) {
      yield
    }
)");
  NotLess not_less(kernel);
  EXPECT_TRUE(not_less.proves(2, 5, -1));
  EXPECT_FALSE(not_less.proves(3, 5, INT64_MIN / 8 * 7));
}

// The second of two warpgroups has 36 of 100 rows, and a third one would have none.
TEST(NotLess, KnowsHowManyWarpgroupsThereAre) {
  for (const int warpgroups : {2, 3}) {
    const ir::Kernel kernel = kernel_of({"a"}, R"(
    %1: i32 = constant {value = 64}
    %2: i32 = constant {value = 100}
    %3: i32 = constant {value = 0}
    %4: i32 = dim {dim = dim(a)}
    %5: i32 = mul %0, %1
    %6: i32 = add %5, %1
    %7: i32 = min %6, %2
    %8: bool = lt %5, %7
    %9: i32 = select %8, %4, %3
)",
                                        warpgroups);
    NotLess not_less(kernel);
    EXPECT_TRUE(not_less.proves(0, 3));
    EXPECT_TRUE(not_less.proves(4, 9));
    EXPECT_EQ(not_less.proves(9, 4), warpgroups == 2);
  }
}

// %1, doubled again and again: each value is looked at once, and factors past 64 bits prove
// nothing.
ir::Kernel doubled(int times) {
  std::string body, last = "%1";
  for (int i = 0; i < times; ++i) {
    const std::string next = "%" + std::to_string(i + 2);
    body += "    " + next + ": i32 = add " + last + ", " + last + "\n";
    last = next;
  }
  return kernel_of({}, "    %1: i32 = cta_index\n" + body);
}

TEST(NotLess, ValuesThatAreDoubledAgainAndAgain) {
  const ir::Kernel few = doubled(40), many_times = doubled(70);
  NotLess some(few);
  EXPECT_TRUE(some.proves(41, 41));
  EXPECT_FALSE(some.proves(40, 41));
  NotLess many(many_times);
  EXPECT_FALSE(many.proves(71, 70));
  EXPECT_FALSE(many.proves(71, 71));
}

// A rest is below what divides. What a branch asks holds inside of it, and no longer.
TEST(NotLess, KnowsRestsAndBranches) {
  const ir::Kernel kernel = kernel_of({"n"}, R"(
    %1: i32 = cta_index
    %2: i32 = constant {value = 8}
    %3: i32 = mod %1, %2
    %4: i32 = dim {dim = dim(n)}
    %5: bool = lt %1, %4
)");
  NotLess not_less(kernel);
  EXPECT_TRUE(not_less.proves(2, 3, -1));
  EXPECT_FALSE(not_less.proves(2, 3, -2));
  EXPECT_FALSE(not_less.proves(4, 1));
  not_less.enter(5);
  EXPECT_TRUE(not_less.proves(4, 1, -1));
  EXPECT_FALSE(not_less.proves(4, 1, -2));
  not_less.leave();
  EXPECT_FALSE(not_less.proves(4, 1));
}

// A block of the grid, and what follows it by so many, is none before the first.
TEST(NotLess, KnowsThatBlocksCountFromZero) {
  const ir::Kernel kernel = kernel_of({"n"}, R"(
    %1: i32 = cta_index
    %2: i32 = cta_count
    %3: i32 = constant {value = 0}
    %4: i32 = dim {dim = dim(n)}
    for_loop %1, %4, %2 (%5: i32) {
      yield
    }
)");
  NotLess not_less(kernel);
  EXPECT_TRUE(not_less.proves(1, 3));
  EXPECT_FALSE(not_less.proves(1, 3, -1));
  EXPECT_TRUE(not_less.proves(5, 3));
  EXPECT_FALSE(not_less.proves(5, 3, -1));
}

// Of sums, with the index of a loop between what bounds it.
TEST(NotLess, KnowsTheIndicesOfLoops) {
  const ir::Kernel kernel = kernel_of({"n"}, R"(
    %1: i32 = cta_index
    %2: i32 = constant {value = 0}
    %3: i32 = constant {value = 1}
    %4: i32 = constant {value = 3}
    %5: i32 = dim {dim = dim(n)}
    %6: i32 = dim {dim = dim((n + 2))}
    for_loop %2, %4, %3 (%7: i32) {
      %8: i32 = add %1, %7
      yield
    }
    for_loop %2, %5, %3 (%9: i32) {
      yield
    }
)");
  NotLess not_less(kernel);
  // What n + 2 has left from first + tap on is no less than what n has left from first on.
  EXPECT_TRUE(not_less.proves({6, 1}, {8, 5}));
  EXPECT_FALSE(not_less.proves({6, 1}, {8, 5}, -1));
  EXPECT_FALSE(not_less.proves({5, 1}, {8, 5}));
  EXPECT_TRUE(not_less.proves(9, 2));
  EXPECT_FALSE(not_less.proves(4, 9));
  // The index is below n, and may be n - 1.
  EXPECT_TRUE(not_less.proves(5, 9, -1));
  EXPECT_FALSE(not_less.proves(5, 9, -2));
}

// Quotients are compared where they have one divisor, and with nothing beside that is not known.
TEST(NotLess, ComparesQuotientsOfOneDivisor) {
  const ir::Kernel kernel = kernel_of({"a", "b", "rows"}, R"(
    %1: i32 = constant {value = 64}
    %2: i32 = constant {value = 128}
    %3: i32 = dim {dim = dim(rows)}
    %4: i32 = div %3, %1
    %5: i32 = div %3, %2
    %6: i32 = ceildiv %3, %2
    %7: i32 = dim {dim = dim(ceil_div(rows, 128))}
    %8: i32 = sub %3, %2
    %9: i32 = div %8, %2
    %10: i32 = dim {dim = dim(a)}
    %11: i32 = dim {dim = dim(b)}
    %12: i32 = dim {dim = dim(ceil_div(rows, 2))}
    %13: i32 = dim {dim = dim((rows + 2) // 2)}
)");
  NotLess not_less(kernel);
  EXPECT_TRUE(not_less.proves(3, 12));
  EXPECT_FALSE(not_less.proves(3, 13));  // of no row it is 1
  EXPECT_TRUE(not_less.proves(3, 13, 1));
  EXPECT_FALSE(not_less.proves(5, 4));
  EXPECT_FALSE(not_less.proves(4, 5));  // more rows would be needed than none
  EXPECT_TRUE(not_less.proves(7, 6));
  EXPECT_TRUE(not_less.proves(6, 7));
  EXPECT_TRUE(not_less.proves({5, 10}, {9, 10}));
  EXPECT_FALSE(not_less.proves({5, 10}, {9, 11}));
}

}  // namespace
}  // namespace tilewright::analysis
