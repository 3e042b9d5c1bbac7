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
}

TEST(Escape, KeepsLinesAndTabs) {
  EXPECT_EQ(escaped_lines("a\tb\nc\\\x1b[0m\xc2\x9bz"), "a\tb\nc\\\\x1b[0m\\xc2\\x9bz");
}

// A backslash at its end would join a comment to the next line.
TEST(Escape, ACommentEndsWithItsLine) {
  EXPECT_EQ(escaped_comment("a\nb\\"), "a\\x0ab\\x5c");
  EXPECT_EQ(escaped_comment("\xc3\xa9"), "\xc3\xa9");
}

}  // namespace
}  // namespace tilewright
