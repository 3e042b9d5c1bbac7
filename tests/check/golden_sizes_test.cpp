#include "check/golden_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/library.h"

namespace tilewright::checks {
namespace {

// A length of which 0 says that it is drawn stays so.
TEST(GoldenSizes, LengthsThatAreDrawnAreNotSet) {
  const library::KernelSource source(find_kernel("attention_paged"));
  const std::vector<GoldenSizes> all = golden_sizes(source, {}, {});
  ASSERT_FALSE(all.empty());
  for (const GoldenSizes& each : all) {
    EXPECT_THAT(each.settings, testing::Contains(testing::StartsWith("batch="))) << each.name;
    EXPECT_THAT(each.settings, testing::Not(testing::Contains(testing::StartsWith("keys="))))
        << each.name;
  }
}

}  // namespace
}  // namespace tilewright::checks
