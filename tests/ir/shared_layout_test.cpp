#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/layout.h"
#include "ir/padded_panels.h"

namespace tilewright::ir {
namespace {

using Coordinates = std::vector<std::int64_t>;

// The swizzles as TMA and wgmma define them: 16-byte chunks of a row exchanged by an XOR with the
// row's number inside the repeating pattern of 8 rows of 128, 64 or 32 bytes.
TEST(SharedLayout, SwizzleExchangesChunks) {
  for (const int swizzle : {0, 32, 64, 128}) {
    for (const int bytes : {1, 2, 4}) {
      const std::int64_t rows = 24;
      const std::int64_t columns = 384 / bytes;
      const SharedLayout layout = SharedLayout::panels(rows, columns, bytes, swizzle);
      ASSERT_EQ(layout.problem(), std::nullopt);
      EXPECT_EQ(layout.size_bytes(), rows * columns * bytes);
      const std::int64_t span = swizzle == 0 ? 16 : swizzle;
      EXPECT_EQ(layout.alignment(), swizzle == 0 ? 128 : 8 * swizzle);
      std::set<std::int64_t> seen;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t at = column * bytes;
          std::int64_t chunk = at % span / 16;
          if (swizzle == 128) chunk ^= row % 8;
          if (swizzle == 64) chunk ^= row / 2 % 4;
          if (swizzle == 32) chunk ^= row / 4 % 2;
          const std::int64_t expected =
              at / span * (rows * span) + row * span + chunk * 16 + at % 16;
          ASSERT_EQ(layout.offset(row, column), expected)
              << layout.to_string() << " row " << row << " column " << column;
          seen.insert(expected);
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), rows * columns);
    }
  }
}

TEST(SharedLayout, RowMajorAndTransposedViews) {
  const SharedLayout row_major = SharedLayout::row_major({5, 3, 7}, 4);
  EXPECT_EQ(row_major.offset({4, 2, 6}), ((4 * 3 + 2) * 7 + 6) * 4);
  EXPECT_EQ(row_major.size_bytes(), 5 * 3 * 7 * 4);
  const SharedLayout layout = SharedLayout::panels(64, 128, 2, 128);
  const SharedLayout view = layout.transposed();
  EXPECT_EQ(view.shape, (Coordinates{128, 64}));
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 128; ++column) {
      ASSERT_EQ(view.offset(column, row), layout.offset(row, column));
    }
  }
  EXPECT_EQ(view.transposed(), layout);
}

TEST(SharedLayout, TextRoundTrips) {
  for (const SharedLayout& layout :
       {SharedLayout::panels(128, 128, 2, 128), SharedLayout::panels(8, 16, 2, 32),
        SharedLayout::panels(64, 64, 1, 0), SharedLayout::panels(64, 64, 2, 64).transposed(),
        SharedLayout::row_major({128}, 4), SharedLayout::row_major({}, 4),
        SharedLayout::parse("[64x64*2|64@0:144,64@1:2]")}) {
    EXPECT_EQ(SharedLayout::parse(layout.to_string()), layout);
    EXPECT_EQ(SharedLayout::parse(layout.to_string()).hash(), layout.hash());
  }
  EXPECT_EQ(SharedLayout::panels(128, 128, 2, 128).to_string(),
            "[128x128*2|128@0:128,64@1:2,2@1:16384|x3.4.3]");
  EXPECT_FALSE(SharedLayout::panels(64, 64, 2, 128) == SharedLayout::panels(64, 64, 2, 64));
}

TEST(SharedLayout, PanelsAreRecognised) {
  const auto panels = SharedLayout::panels(96, 256, 1, 64).transposed().as_panels();
  ASSERT_TRUE(panels.has_value());
  EXPECT_EQ(panels->contiguous_axis, 0);
  EXPECT_EQ(panels->rows, 96);
  EXPECT_EQ(panels->span, 64);
  EXPECT_EQ(panels->span_bytes, 64);
  EXPECT_EQ(panels->count, 4);
  EXPECT_EQ(panels->distance, 96 * 64);
  EXPECT_EQ(panels->swizzle_bytes, 64);
  // They may lie further apart than their rows take.
  EXPECT_EQ(
      SharedLayout::parse("[64x128*2|64@0:128,64@1:2,2@1:16384|x3.4.3]").as_panels()->distance,
      16384);
  EXPECT_FALSE(SharedLayout::parse("[64x64*2|64@0:144,64@1:2]").as_panels().has_value())
      << "rows are padded";
  EXPECT_FALSE(SharedLayout::parse("[64x64*2|64@0:128,64@1:2|x2.4.3]").as_panels().has_value())
      << "the swizzle is narrower than the rows";
}

TEST(SharedLayout, PanelsMayHaveRowsThatLieApart) {
  const auto one = padded_panels(SharedLayout::parse("[16x64*2|16@0:144,64@1:2]"));
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->rows, 16);
  EXPECT_EQ(one->span, 64);
  EXPECT_EQ(one->span_bytes, 144);
  EXPECT_EQ(one->count, 1);
  EXPECT_EQ(one->distance, 15 * 144 + 128) << "behind the last row's last element";
  const auto two = padded_panels(SharedLayout::parse("[16x64*2|16@0:80,32@1:2,2@1:1280]"));
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->span, 32);
  EXPECT_EQ(two->span_bytes, 80);
  EXPECT_EQ(two->count, 2);
  EXPECT_EQ(two->distance, 1280);
  // Side by side they are the panels that TMA takes, whatever their swizzle.
  const SharedLayout swizzled = SharedLayout::panels(64, 128, 2, 128);
  EXPECT_EQ(padded_panels(swizzled)->swizzle_bytes, 128);
  EXPECT_EQ(padded_panels(swizzled)->distance, swizzled.as_panels()->distance);
  for (const char* other : {"[64x64*2|64@0:128,64@1:2|x2.4.3]",  // a swizzle narrower than rows
                            "[16x64*2|16@0:80,16@1:2,2@1:1280,2@1:4096]",  // panels of panels
                            "[16x64*2|16@0:2,64@1:48]",                    // columns lie apart
                            "[16x64*2|8@0:144,2@0:4096,64@1:2]",           // rows in two heaps
                            "[64*2|64@0:2]"}) {
    EXPECT_FALSE(padded_panels(SharedLayout::parse(other)).has_value()) << other;
  }
}

TEST(SharedLayout, ImpossiblePanelsAreErrors) {
  const auto message = [](std::int64_t rows, std::int64_t columns, int bytes, int swizzle) {
    try {
      SharedLayout::panels(rows, columns, bytes, swizzle);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message(64, 96, 2, 128).find("96 columns of 2 bytes do not fill panels of 128"),
            std::string::npos);
  EXPECT_NE(message(64, 96, 2, 128).find("fix: a swizzle of 64 bytes"), std::string::npos);
  EXPECT_NE(message(64, 12, 2, 0).find("fix: rows of a multiple of 16 bytes"), std::string::npos);
  EXPECT_NE(message(60, 64, 2, 128).find("the number of rows is 60"), std::string::npos);
  EXPECT_NE(message(64, 64, 2, 48).find("a swizzle of 48 bytes"), std::string::npos);
  EXPECT_NE(message(64, 64, 3, 0).find("elements of 3 bytes in panels of 16"), std::string::npos);
  EXPECT_NE(message(64, 64, 0, 64).find("element size"), std::string::npos);
}

// What a swizzle exchanges are whole elements.
TEST(SharedLayout, ElementsLieInSwizzledChunks) {
  SharedLayout layout = SharedLayout::panels(64, 32, 4, 128);
  EXPECT_EQ(layout.problem(), std::nullopt);
  layout.swizzle.base = 1;
  EXPECT_EQ(layout.problem().value_or(""), "elements of 4 bytes in swizzled chunks of 2");
}

}  // namespace
}  // namespace tilewright::ir
