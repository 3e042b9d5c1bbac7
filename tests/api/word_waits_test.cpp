#include "api/word_waits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "api/word_release.h"

// What streams wait for by the driver, and what ends their waits.
namespace tilewright {
namespace {

// The driver compares by "at least", modulo 2^32.
TEST(WordWaits, MoreThanANumberIsAtLeastTheNext) {
  using Kind = runtime::WordOperation::Kind;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto waited = [](Compare compare, std::int32_t value) {
    return WordWaits::by_driver(nullptr, compare, value).value();
  };
  EXPECT_EQ(waited(Compare::gt, 7).kind, Kind::wait_at_least);
  EXPECT_EQ(waited(Compare::gt, 7).value, 8);
  EXPECT_EQ(waited(Compare::gt, kMost).value, std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(waited(Compare::ge, 7).value, 7);
  EXPECT_EQ(waited(Compare::eq, 7).kind, Kind::wait_equal);
  for (const Compare compare : {Compare::ne, Compare::lt, Compare::le}) {
    EXPECT_FALSE(WordWaits::by_driver(nullptr, compare, 7).has_value());
  }
}

// Tensors of a rank that is lost stay as they are: only its words are overwritten.
TEST(WordRelease, WritesSignalsAndNothingElse) {
  using Kind = ir::ProgramBuffer::Kind;
  ir::Program program;
  for (const Kind kind : {Kind::in, Kind::signals, Kind::zeroed}) {
    ir::ProgramBuffer buffer;
    buffer.kind = kind;
    buffer.dtype = i32;
    buffer.shape = {Dim(5)};
    program.buffers.push_back(buffer);
  }
  std::byte memory[60];
  const auto words = words_of(program, 0, [&](int buffer, int) { return memory + 20 * buffer; });
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0].at, memory + 20);
  EXPECT_EQ(words[0].bytes, 20U);
}

}  // namespace
}  // namespace tilewright
