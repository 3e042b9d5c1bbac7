#include "cpu/far_stores.h"

#include <gtest/gtest.h>

#include <string>

namespace tilewright::cpu {
namespace {

constexpr std::int64_t kCache = 32 << 20;

// 'f' for each block that stores past the caches, 'n' for the others. MB of its tensors.
std::string stores_of(double all, double stored, std::int64_t blocks, unsigned threads,
                      std::int64_t cache = kCache) {
  constexpr double kMegabyte = 1 << 20;
  const FarStores stores({all * kMegabyte, stored * kMegabyte}, blocks, threads, cache);
  std::string text;
  for (std::int64_t i = 0; i < blocks; ++i) text += stores.of(i) ? 'f' : 'n';
  return text;
}

TEST(FarStoresTest, NoneWhereTheCachesHoldAll) {
  EXPECT_EQ(stores_of(24, 12, 4, 2), "nnnn");
  EXPECT_EQ(stores_of(24, 12, 4, 1), "nnnn");
  EXPECT_EQ(stores_of(4096, 2048, 4, 2, 0), "nnnn") << "of caches that nothing is known of";
  EXPECT_FALSE(FarStores().of(0));
}

TEST(FarStoresTest, OneThreadStoresAllFar) {
  EXPECT_EQ(stores_of(24.5, 12, 4, 1), "ffff");
  EXPECT_EQ(stores_of(32, 16, 1, 8), "f") << "of a single block";
}

TEST(FarStoresTest, SeveralThreadsKeepWhatThereIsRoomFor) {
  EXPECT_EQ(stores_of(32, 16, 8, 2), "fnfnfnfn");
  EXPECT_EQ(stores_of(28, 14, 7, 2), "fnnfnnn");
  EXPECT_EQ(stores_of(40, 20, 10, 16), "ffffnffffn");
  EXPECT_EQ(stores_of(48, 24, 4, 2), "ffff");
  EXPECT_EQ(stores_of(4096, 2048, 4, 2), "ffff");
  EXPECT_EQ(stores_of(32, 32, 4, 2), "fnnn") << "of nothing but outputs";
}

TEST(FarStoresTest, OfAsManyBlocksAsThereMayBe) {
  constexpr std::int64_t kBlocks = INT32_MAX;
  const FarStores stores({32e6, 16e6}, kBlocks, 2, kCache * 9 / 10);
  std::int64_t near = 0;
  for (std::int64_t i = 0; i < 1000; ++i) near += stores.of(kBlocks - 1 - i) ? 0 : 1;
  EXPECT_NEAR(static_cast<double>(near), 1000 * (0.675 * (1 << 25) - 16e6) / 16e6, 2);
}

}  // namespace
}  // namespace tilewright::cpu
