#include "analysis/access_bounds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/text.h"

namespace tilewright::analysis {
namespace {

constexpr std::int64_t kExtent = 100, kSize = 16;

std::string fault(const AxisCheck& check, std::int64_t start, std::int64_t limit = kExtent) {
  return describe_fault(check, start, limit, kExtent, "X");
}

AxisCheck check_of(std::int64_t size, bool counted, bool placed, bool loaded_end) {
  AxisCheck check{1, size};
  check.counted = counted;
  check.placed = placed;
  check.loaded_end = loaded_end;
  return check;
}

TEST(AccessBounds, AnIndexIsOneOfTheAxis) {
  const AxisCheck index = check_of(0, true, true, false);
  EXPECT_EQ(fault(index, 0), "");
  EXPECT_EQ(fault(index, 99), "");
  EXPECT_EQ(fault(index, -1), "index -1 on axis 1 of X, which has 100");
  EXPECT_EQ(fault(index, 100), "index 100 on axis 1 of X, which has 100");
}

TEST(AccessBounds, ABlockBeginsInTheAxisWhereTheLaunchPlacesIt) {
  const AxisCheck counted = check_of(kSize, true, true, false);
  EXPECT_EQ(fault(counted, 0), "");
  EXPECT_EQ(fault(counted, 99), "");
  EXPECT_EQ(fault(counted, -1), "a block that begins at -1 on axis 1 of X, which has 100");
  EXPECT_EQ(fault(counted, 100), "a block that begins at 100 on axis 1 of X, which has 100");
  // What a kernel subtracts from a loaded number may reach out on purpose, while some of it is in.
  const AxisCheck placed = check_of(kSize, false, true, false);
  EXPECT_EQ(fault(placed, -15), "");
  EXPECT_NE(fault(placed, -16), "");
  EXPECT_NE(fault(placed, 100), "");
  // A loop or the grid has a part in it: where it ends, nothing is loaded.
  const AxisCheck shared = check_of(kSize, true, false, false);
  EXPECT_EQ(fault(shared, 100), "");
  EXPECT_NE(fault(shared, -1), "");
}

TEST(AccessBounds, ABlockEndsInTheAxisWhereTheLaunchSaysItsEnd) {
  const AxisCheck ended = check_of(kSize, false, false, true);
  EXPECT_EQ(fault(ended, 90, 100), "");
  EXPECT_EQ(fault(ended, 90, 101),
            "a block from 90 that ends at 101 on axis 1 of X, which has 100");
  EXPECT_EQ(fault(ended, 84, 200), "") << "its own size ends it first";
  EXPECT_NE(fault(ended, 85, 200), "");
  EXPECT_EQ(fault(ended, 120, 120), "") << "nothing of it is accessed";
  EXPECT_EQ(fault(ended, 120, 110), "");
}

// Of a load of 16 elements: what of it is asked for depends on where start and end come from.
AxisCheck check_of_load(const std::string& start, const std::string& limit) {
  const ir::Kernel kernel = ir::parse_text(
      "kernel \"loads\" tile\nin L: i32[64] = %0\ngrid (1)\nbody (%1: i32) {\n"
      "  %2: i32 = constant {value = 3}\n  %3: i32 = load_index %0, %2\n"
      "  %4: i32 = constant {value = 16}\n  %5: i32 = constant {value = 15}\n"
      "  %6: i32 = add %3, %4\n  %7: i32 = add %3, %5\n  %8: i32 = add %1, %3\n"
      "  %9: i32 = sub %3, %2\n  %10: tile<i32, 16> = load %0, " +
          start + ", " + limit + " {sizes = [16]}\n}\n",
      "loads.tw");
  const std::vector<AxisCheck> checks =
      axis_checks(kernel.body.body.back(), 1, LoadedIntegers(kernel));
  return checks.empty() ? AxisCheck{0, -1} : checks.front();
}

TEST(AccessBounds, AreAskedOfWhatTheLaunchGives) {
  EXPECT_EQ(check_of_load("%1", "%4").size, -1) << "nothing is";
  const AxisCheck whole = check_of_load("%3", "%6");
  EXPECT_TRUE(whole.counted && whole.placed);
  EXPECT_FALSE(whole.loaded_end) << "its size ends it";
  EXPECT_EQ(whole.source, 3u);
  EXPECT_TRUE(check_of_load("%3", "%7").loaded_end) << "one less than its size";
  const AxisCheck beside_grid = check_of_load("%8", "%4");
  EXPECT_TRUE(beside_grid.counted);
  EXPECT_FALSE(beside_grid.placed);
  EXPECT_FALSE(check_of_load("%9", "%4").counted) << "a difference may be below 0 on purpose";
  EXPECT_TRUE(check_of_load("%9", "%4").placed);
  const AxisCheck ended = check_of_load("%1", "%3");
  EXPECT_TRUE(ended.loaded_end);
  EXPECT_EQ(ended.source, 3u) << "of its end, as its start has none";
}

}  // namespace
}  // namespace tilewright::analysis
