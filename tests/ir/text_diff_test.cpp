#include "ir/text_diff.h"

#include <gtest/gtest.h>

namespace tilewright::ir {
namespace {

std::string diff(std::string_view before, std::string_view after) {
  return format_diff(text_diff(before, after));
}

TEST(TextDiffTest, EqualTextsDifferInNothing) {
  EXPECT_EQ(diff("", ""), "");
  EXPECT_EQ(diff("%0 = a\n%1 = b %0\n", "%0 = a\n%1 = b %0\n"), "");
}

TEST(TextDiffTest, RenumberingIsNoChange) {
  EXPECT_EQ(
      diff("%0 = a\n%1 = b\n%2 = c %1\n%3 = d %2, %1\n", "%0 = b\n%1 = c %0\n%2 = d %1, %0\n"),
      "- %0 = a\n  %0 = b\n  %1 = c %0\n");
}

TEST(TextDiffTest, AnotherOperandIsAChange) {
  EXPECT_EQ(diff("%0 = a\n%1 = b\n%2 = c %0\n", "%0 = a\n%1 = b\n%2 = c %1\n"),
            "  %0 = a\n  %1 = b\n- %2 = c %0\n+ %2 = c %1\n");
  // Two values that became one.
  EXPECT_EQ(diff("%0 = a\n%1 = a\n%2 = c %0, %1\n", "%0 = a\n%1 = c %0, %0\n"),
            "  %0 = a\n- %1 = a\n- %2 = c %0, %1\n+ %1 = c %0, %0\n");
}

TEST(TextDiffTest, OnlyContextIsShown) {
  EXPECT_EQ(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n"),
            "...\n  3\n  4\n- 5\n+ x\n  6\n  7\n");
  EXPECT_EQ(diff("1\n2\n3\n4\n5\n6\n7\n", "0\n1\n2\n3\n4\n5\n6\n"),
            "+ 0\n  1\n  2\n...\n  5\n  6\n- 7\n");
}

TEST(TextDiffTest, WholeTexts) {
  EXPECT_EQ(diff("", "a\nb\n"), "+ a\n+ b\n");
  EXPECT_EQ(diff("a\nb\n", ""), "- a\n- b\n");
}

// Applying the lines gives both texts back, whatever they are.
TEST(TextDiffTest, LinesAreThoseOfBothTexts) {
  std::uint32_t state = 1;
  const auto random = [&](std::uint32_t n) {
    return (state = state * 1664525 + 1013904223) % 97 % n;
  };
  for (int round = 0; round < 200; ++round) {
    std::string texts[2];
    for (std::string& text : texts) {
      for (std::uint32_t i = random(12); i > 0; --i) text += std::string(1, 'a' + random(4)) + '\n';
    }
    std::string before, after;
    std::size_t same = 0;
    for (const DiffLine& line : text_diff(texts[0], texts[1])) {
      if (line.kind != DiffLine::Kind::added) before += line.text + '\n';
      if (line.kind != DiffLine::Kind::removed) after += line.text + '\n';
      same += line.kind == DiffLine::Kind::same;
    }
    EXPECT_EQ(before, texts[0]);
    EXPECT_EQ(after, texts[1]);
    if (texts[0] == texts[1]) {
      EXPECT_EQ(2 * same, texts[0].size());
    }
  }
}

}  // namespace
}  // namespace tilewright::ir
