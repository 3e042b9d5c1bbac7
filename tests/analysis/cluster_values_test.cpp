#include "analysis/cluster_values.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace tilewright::analysis {
namespace {

// Values are numbered as in the text.
TEST(ClusterValues, CountsWhatRanksMakeDifferent) {
  const ir::Kernel kernel = ir::parse_text(R"(kernel "ranks" machine
dim n
grid (8)
cluster 8
threads 128
body () {
  role {name = "only", first_warp = 0, warps = 4, registers = 64} (%0: i32) {
    %1: i32 = cluster_rank
    %2: i32 = constant {value = 4}
    %3: i32 = mod %1, %2
    %4: i32 = div %1, %2
    %5: i32 = constant {value = 8}
    %6: i32 = cta_index
    %7: i32 = div %6, %5
    %8: i32 = mod %6, %2
    %9: i32 = mul %7, %8
    %10: i32 = add %3, %4
    %11: i32 = dim {dim = dim(n)}
    %12: i32 = mul %11, %4
    %13: i32 = div %12, %2
    %14: i32 = constant {value = 1}
    %15: i32 = for_loop %4, %11, %14, %0 (%16: i32, %17: i32) {
      %18: i32 = add %17, %3
      yield %18
    }
    %19: i32 = for_loop %0, %4, %14, %0 (%20: i32, %21: i32) {
      yield %20
    }
    %22: i32 = constant {value = 3}
    %23: i32 = constant {value = 12}
    %24: i32 = mod %6, %22
    %25: i32 = div %6, %23
    %26: i32 = add %6, %14
    %27: i32 = div %26, %22
    %28: bool = lt %1, %2
    %29: i32 = if_then %28 () {
      yield %22
    } () {
      yield %22
    }
    %30: i32 = for_loop %22, %11, %14, %22 (%31: i32, %32: i32) {
      yield %1
    }
    %33: i32 = for_loop %0, %11, %4, %0 (%34: i32, %35: i32) {
      yield %35
    }
    yield
  }
}
)",
                                           "ranks.tw");
  const ClusterValues values(kernel);
  const auto different = [&](ir::ValueId value) { return values.different(value); };
  EXPECT_EQ(different(0), 1);   // the warpgroup's number
  EXPECT_EQ(different(3), 4);   // rank mod 4
  EXPECT_EQ(different(4), 2);   // rank / 4
  EXPECT_EQ(different(6), 8);   // the CTA's number,
  EXPECT_EQ(different(7), 1);   // that of its cluster,
  EXPECT_EQ(different(8), 4);   // and its place among four
  EXPECT_EQ(different(9), 4);   // a product of the two
  EXPECT_EQ(different(10), 5);  // rank mod 4 + rank / 4
  EXPECT_EQ(different(11), 1);  // a length
  EXPECT_EQ(different(13), 2);  // a length times rank / 4, of which nothing more is known
  EXPECT_EQ(different(16), 2);  // the index of a loop that begins there
  EXPECT_EQ(different(17), 4);  // what it carries
  EXPECT_EQ(different(15), 8);  // to an end in one of two turns
  EXPECT_EQ(different(20), 1);  // a loop of different lengths has the same index in each turn,
  EXPECT_EQ(different(19), 2);  // and ends in different ones
  // Where clusters do not begin at multiples of the divisor, which CTAs agree depends on the
  // cluster.
  EXPECT_EQ(different(24), 8);  // the CTA's number mod 3,
  EXPECT_EQ(different(25), 8);  // by 12,
  EXPECT_EQ(different(27), 8);  // and the next one's by 3
  EXPECT_EQ(different(29), 8);  // what is chosen by the rank
  EXPECT_EQ(different(32), 8);  // a number at first, then the rank
  EXPECT_EQ(different(34), 2);  // the index of a loop whose steps are as long as the rank says
}

}  // namespace
}  // namespace tilewright::analysis
