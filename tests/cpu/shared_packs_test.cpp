#include "cpu/shared_packs.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace tilewright::cpu {
namespace {

// What a thread keeps of factors, whose packs take 64 x 64 floats.
class SharedPacksTest : public testing::Test {
 protected:
  SharedPacksTest() {
    program_.packs_bytes = 3 * kBytes;
    memory_.resize(static_cast<std::size_t>(program_.packs_bytes));
    multiply_.shared_along = 1;
  }
  SharedPacks packs_on(std::vector<std::int64_t> grid) { return {program_, grid, memory_.data()}; }
  // Whether a product by factor `b` finds its packs; it makes them otherwise.
  static std::optional<bool> needs(SharedPacks& packs, const Multiply& multiply, int b,
                                   std::int64_t block, std::int64_t rows = 16) {
    Product product{};
    product.m = rows;
    product.n = product.k = 64;
    product.b.data = place_of(b);
    Packs* const found = packs.of(multiply, product, block);
    if (found == nullptr) return std::nullopt;
    const bool are_there = found->are_there;
    found->at += kBytes / 4;
    return are_there;
  }
  static std::byte* place_of(int b) { return reinterpret_cast<std::byte*>(0x10000 + 64 * b); }
  static constexpr std::int64_t kBytes = 64 * 64 * 4;
  Program program_;
  std::vector<std::byte> memory_;
  Multiply multiply_ = {};
};

TEST_F(SharedPacksTest, AreFoundByTheBlocksBehind) {
  SharedPacks packs = packs_on({4, 2});
  EXPECT_FALSE(packs.have(place_of(0)));
  for (int b = 0; b < 3; ++b) EXPECT_EQ(needs(packs, multiply_, b, 0), false);
  EXPECT_EQ(needs(packs, multiply_, 3, 0), std::nullopt);  // no room
  for (int b = 0; b < 3; ++b) EXPECT_EQ(needs(packs, multiply_, b, 1), true);
  EXPECT_TRUE(packs.have(place_of(1)));
  EXPECT_FALSE(packs.have(place_of(3)));
  EXPECT_EQ(needs(packs, multiply_, 0, 2, /*rows=*/4), std::nullopt);  // it packs nothing
  EXPECT_EQ(needs(packs, multiply_, 3, 2), false);  // other blocks begin: there is room again
  EXPECT_EQ(needs(packs, multiply_, 0, 2), false);
  EXPECT_EQ(needs(packs, multiply_, 3, 3), true);
}

TEST_F(SharedPacksTest, OfAProductThatWasNotPerformedAreNotThere) {
  SharedPacks packs = packs_on({2});
  Product product{};
  product.m = product.n = product.k = 64;
  product.b.data = place_of(0);
  ASSERT_NE(packs.of(multiply_, product, 0), nullptr);
  EXPECT_EQ(needs(packs, multiply_, 0, 0), false);
  EXPECT_EQ(needs(packs, multiply_, 0, 1), true);
}

// The same memory as numbers of another kind is packed otherwise.
TEST_F(SharedPacksTest, OfAnotherElementAreOthers) {
  SharedPacks packs = packs_on({2});
  Product product{};
  product.m = product.n = product.k = 64;
  product.b.data = place_of(0);
  for (const Element element : {Element::f16, Element::bf16}) {
    product.element = element;
    Packs* const found = packs.of(multiply_, product, 0);
    ASSERT_NE(found, nullptr);
    EXPECT_FALSE(found->are_there);
    found->at += kBytes / 4;
  }
  EXPECT_TRUE(packs.of(multiply_, product, 1)->are_there);
}

TEST_F(SharedPacksTest, OfAnotherWidthOrOrderAreOthers) {
  SharedPacks packs = packs_on({2});
  Product product{};
  product.m = product.n = product.k = 64;
  product.b.data = place_of(0);
  product.b.row_stride = product.b.column_stride = 4;
  const auto are_there = [&] {
    Packs* const found = packs.of(multiply_, product, 0);
    const bool there = found->are_there;
    found->at += kBytes / 4;
    return there;
  };
  EXPECT_FALSE(are_there());
  product.n = 32;
  EXPECT_FALSE(are_there());
  product.b.column_stride = 256;
  EXPECT_FALSE(are_there());
  EXPECT_TRUE(are_there());
}

TEST_F(SharedPacksTest, AreKeptForBlocksThatFollowEachOtherAlone) {
  SharedPacks along_y = packs_on({4, 2});
  multiply_.shared_along = 2;
  EXPECT_EQ(needs(along_y, multiply_, 0, 0), std::nullopt);
  SharedPacks first_is_one = packs_on({1, 2});
  EXPECT_EQ(needs(first_is_one, multiply_, 0, 0), false);
  SharedPacks one_block = packs_on({1, 1});
  EXPECT_EQ(needs(one_block, multiply_, 0, 0), std::nullopt);
}

// A thread that is given blocks of which none reads the same keeps nothing any more.
TEST_F(SharedPacksTest, EndWhereNobodyFindsThem) {
  SharedPacks packs = packs_on({4, 2});
  for (int block = 0; block < 2; ++block) EXPECT_EQ(needs(packs, multiply_, block, block), false);
  EXPECT_EQ(needs(packs, multiply_, 1, 2), true);
  for (int block = 3; block < 5; ++block) EXPECT_EQ(needs(packs, multiply_, block, block), false);
  EXPECT_EQ(needs(packs, multiply_, 5, 5), false);
  EXPECT_EQ(needs(packs, multiply_, 6, 6), std::nullopt);
}

}  // namespace
}  // namespace tilewright::cpu
