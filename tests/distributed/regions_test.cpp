#include "distributed/regions.h"

#include <gtest/gtest.h>

#include <vector>

namespace tilewright::distributed {
namespace {

// Two arenas of 64 bytes of rank 1, of which rank 2 is on another node.
TEST(Regions, AreFoundWhereAllBytesLieInside) {
  std::vector<std::byte> own(64), others(64), second(64);
  Regions regions;
  const std::int64_t first = regions.add("first", {others.data(), own.data(), nullptr}, 1, 64);
  regions.add("second", {nullptr, second.data(), nullptr}, 1, 64);
  const auto found = regions.find(own.data() + 16, 48);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, first);
  EXPECT_EQ(found->offset, 16U);
  EXPECT_EQ(found->ranks[0], others.data() + 16);
  EXPECT_EQ(found->ranks[2], nullptr);
  EXPECT_TRUE(regions.find(own.data() + 64, 0));
  EXPECT_FALSE(regions.find(own.data() + 16, 49)) << "it ends behind the arena";
  EXPECT_FALSE(regions.find(own.data() + 1, SIZE_MAX));
  EXPECT_FALSE(regions.find(others.data(), 1)) << "it is another rank's";
  EXPECT_EQ(regions.find(second.data(), 64)->name, "second");
  regions.remove(first);
  EXPECT_FALSE(regions.find(own.data(), 1));
}

}  // namespace
}  // namespace tilewright::distributed
