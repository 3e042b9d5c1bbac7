#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/layout.h"

// Layouts as text, and what is said of text that is none.
namespace tilewright::ir {
namespace {

std::string message_of(std::string_view text, bool shared) {
  try {
    if (shared) {
      SharedLayout::parse(text);
    } else {
      RegisterLayout::parse(text);
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message();
  }
  return {};
}

std::vector<RegisterLayout> sample_layouts() {
  const RegisterLayout accumulator = wgmma_accumulator(64, 128);
  return {accumulator,
          wgmma_accumulator(128, 24),
          wgmma_a_fragment(64, 64, 1),
          wgmma_a_fragment(64, 32, 4),
          blocked({64, 128}, 128, 8),
          blocked({3}, 64, 4),
          blocked({}, 32, 1),
          accumulator.reduce(1, Reduction::partial),
          accumulator.reduce(1, Reduction::complete),
          accumulator.reduce(0, Reduction::partial),
          accumulator.reduce(0, Reduction::complete).reduce(1, Reduction::partial)};
}

TEST(RegisterLayout, ProblemNamesWhatDisagrees) {
  EXPECT_NE(message_of("[64x128|r:64@1:1|l:32@0:1]", false)
                .find("axis 0 has size 64 but its modes "
                      "cover 32"),
            std::string::npos);
  EXPECT_NE(message_of("[32x8|r:2@1:1,4@1:1|l:32@0:1]", false).find("axis 1: the"),
            std::string::npos);
  EXPECT_NE(message_of("[64x1|l:16@0:1]", false).find("do not make 32"), std::string::npos);
  EXPECT_NE(message_of("[32x8|r:8@1:1|l:4+1,8@0:1|w:4@0:8]", false).find("which has size 8, not 1"),
            std::string::npos);
  EXPECT_NE(message_of("[32x1|r:2+1|l:32@0:1]", false).find("registers hold partial sums"),
            std::string::npos);
  EXPECT_NE(message_of("[32|l:32@1:1]", false).find("axis 1 of a shape of rank 1"),
            std::string::npos);
  EXPECT_NE(message_of("[32|l:32@0:1|w:64*]", false).find("more than 32 warps"), std::string::npos);
  EXPECT_NE(message_of("[32|r:2147483647*,2147483647*,2147483647*|l:32@0:1]", false)
                .find("registers of a lane"),
            std::string::npos);
}

TEST(RegisterLayout, TextRoundTrips) {
  std::set<std::string> texts;
  for (const RegisterLayout& layout : sample_layouts()) {
    EXPECT_EQ(layout.problem(), std::nullopt) << layout.to_string();
    const RegisterLayout again = RegisterLayout::parse(layout.to_string());
    EXPECT_EQ(again, layout);
    EXPECT_EQ(again.to_string(), layout.to_string());
    EXPECT_EQ(again.hash(), layout.hash());
    EXPECT_EQ(layout.to_string().find_first_of(" \t\n"), std::string::npos);
    texts.insert(layout.to_string());
  }
  EXPECT_EQ(texts.size(), sample_layouts().size()) << "two layouts share a text";
  EXPECT_EQ(wgmma_accumulator(64, 128).to_string(),
            "[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|w:4@0:16]");
}

TEST(Layouts, BadTextIsAnErrorThatNamesThePlace) {
  EXPECT_NE(message_of("[64x|l:32@0:1]", false).find("number below 2^31 at character 5"),
            std::string::npos);
  EXPECT_NE(message_of("[64|r:2#1]", false).find("expected '@', '+' or '*' at character 8"),
            std::string::npos);
  EXPECT_NE(message_of("[32|l:32@0:1] ", false).find("more text after the layout"),
            std::string::npos);
  EXPECT_NE(message_of("[64x64|64@0:64,64@1:1]", true).find("expected '*' at character 7"),
            std::string::npos);
  EXPECT_NE(message_of("[8x8*2|8@0:8,8@1:2]", true).find("a stride of 8 bytes overlaps the 16"),
            std::string::npos);
  EXPECT_NE(
      message_of("[8x8*2|8@0:16,4@1:2]", true).find("axis 1 has size 8 but its modes cover 4"),
      std::string::npos);
  EXPECT_NE(message_of("[4x64*2|4@0:128,64@1:2|x3.4.3]", true)
                .find("512 bytes, not a multiple of the swizzle's pattern of 1024"),
            std::string::npos);
  EXPECT_NE(message_of("[8*2|8@0:2|x4.4.3]", true).find("a swizzle of 4 bits"), std::string::npos);
}

TEST(Layouts, DamagedTextNeverPassesUnchecked) {
  std::vector<std::pair<std::string, bool>> texts;
  for (const RegisterLayout& layout : sample_layouts())
    texts.emplace_back(layout.to_string(), false);
  for (const int swizzle : {0, 32, 64, 128}) {
    texts.emplace_back(SharedLayout::panels(64, 128, 2, swizzle).to_string(), true);
  }
  std::mt19937 random(7);
  const std::string alphabet = "0123456789x@:,|*+.[]rlw9";
  for (int round = 0; round < 40000; ++round) {
    auto [text, shared] = texts[random() % texts.size()];
    for (int change = 0; change < 1 + static_cast<int>(random() % 3); ++change) {
      const std::size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        default:
          text.erase(at, text.size() > 1 ? 1 : 0);
      }
    }
    try {
      if (shared) {
        const SharedLayout layout = SharedLayout::parse(text);
        EXPECT_EQ(SharedLayout::parse(layout.to_string()), layout) << text;
      } else {
        const RegisterLayout layout = RegisterLayout::parse(text);
        EXPECT_EQ(RegisterLayout::parse(layout.to_string()), layout) << text;
      }
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
    }
  }
}

}  // namespace
}  // namespace tilewright::ir
