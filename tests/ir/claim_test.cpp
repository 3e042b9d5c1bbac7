#include "ir/claim.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tilewright {
namespace {

// Where a bound is met exactly, and one off on either side.
TEST(Claim, HoldsUpToItsBound) {
  const auto holds = [](Claim::Relation relation, std::int64_t found) {
    return Claim(Claim::Figure::registers, "", relation, 4, {}).holds_of(found);
  };
  EXPECT_TRUE(holds(Claim::Relation::at_most, 4));
  EXPECT_FALSE(holds(Claim::Relation::at_most, 5));
  EXPECT_TRUE(holds(Claim::Relation::at_least, 4));
  EXPECT_FALSE(holds(Claim::Relation::at_least, 3));
  EXPECT_TRUE(holds(Claim::Relation::equal, 4));
  EXPECT_FALSE(holds(Claim::Relation::equal, 3));
  EXPECT_FALSE(holds(Claim::Relation::equal, 5));
}

}  // namespace
}  // namespace tilewright
