#include "cpu/listing.h"

#include <gtest/gtest.h>

namespace tilewright::cpu {
namespace {

TEST(CpuListing, TheShortestExecutionCountsForEach) {
  Cost cost;
  EXPECT_EQ(cost.seconds(), 0);
  for (const double seconds : {3.0, 1.0, 2.0}) cost.add(seconds);
  EXPECT_EQ(cost.count, 3);
  EXPECT_EQ(cost.shortest, 1);
  EXPECT_EQ(cost.seconds(), 3);
}

}  // namespace
}  // namespace tilewright::cpu
