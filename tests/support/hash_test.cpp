#include "support/hash.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

// The values are XXH3's own: a cache written by one build is read by the next.
TEST(HashTest, ContentHashIsStable) {
  EXPECT_EQ(content_hash(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(content_hash("tilewright").size(), 32u);
  EXPECT_EQ(content_hash("tilewright").find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(HashTest, Hash64IsStable) { EXPECT_EQ(hash64(""), 0x2d06800538d394c2u); }

TEST(HashTest, EveryByteCounts) {
  EXPECT_NE(content_hash("a"), content_hash("b"));
  EXPECT_NE(content_hash(std::string_view("a\0b", 3)), content_hash(std::string_view("a\0c", 3)));
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

}  // namespace
}  // namespace tilewright
