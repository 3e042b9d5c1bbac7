#include "support/escape.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Escape, FindsWhatATerminalObeys) {
  EXPECT_EQ(find_control("plain \xc3\xa9 text"), std::string_view::npos);
  EXPECT_EQ(find_control("a\nb"), 1u);
  EXPECT_EQ(find_control("\x1b[31m"), 0u);
  EXPECT_EQ(find_control("ab\x7f"), 2u);
  EXPECT_EQ(find_control("a\xc2\x9b"), 1u) << "CSI as one character of Unicode";
  EXPECT_EQ(find_control("a\xc2\xa0"), std::string_view::npos);
  EXPECT_EQ(find_control("a\xe2\x80\xae"), 1u) << "from here on right to left";
  EXPECT_EQ(find_control("\xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf"), std::string_view::npos);
}

TEST(Escape, KeepsLinesAndTabs) {
  EXPECT_EQ(escaped_lines("a\tb\nc\\\x1b[0m\xc2\x9bz"), "a\tb\nc\\\\x1b[0m\\xc2\\x9bz");
}

// A Latin-1 letter, a character without its end, one that is written longer than it needs, half of
// a pair of UTF-16, and what lies behind the last one.
TEST(Escape, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(escaped_lines("1x2\xf8>"), "1x2\\xf8>");
  EXPECT_EQ(escaped_lines("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(escaped_lines("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(escaped_lines("\xe0\x81\x81"), "\\xe0\\x81\\x81");
  EXPECT_EQ(escaped_lines("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(escaped_lines("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(escaped_lines("\x9bm"), "\\x9bm");
}

// A backslash at its end would join a comment to the next line.
TEST(Escape, ACommentEndsWithItsLine) {
  EXPECT_EQ(escaped_comment("a\nb\\"), "a\\x0ab\\x5c");
  EXPECT_EQ(escaped_comment("\xc3\xa9"), "\xc3\xa9");
}

}  // namespace
}  // namespace tilewright
