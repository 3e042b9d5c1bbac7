#include "ir/modes.h"

#include <fmt/format.h>

#include <charconv>

#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

bool continues(const Mode& low, const Mode& high) {
  if (low.kind != high.kind) return false;
  if (low.kind == ModeKind::replicate) return true;
  if (low.axis != high.axis) return false;
  return low.kind == ModeKind::partial || high.stride == low.stride * low.size;
}

}  // namespace

std::int64_t total_size(const std::vector<Mode>& modes, std::int64_t limit) {
  std::int64_t size = 1;
  for (const Mode& mode : modes) {
    size *= mode.size;
    if (size > limit) break;
  }
  return size;
}

std::vector<Mode> merged(const std::vector<Mode>& modes) {
  std::vector<Mode> result;
  for (Mode mode : modes) {
    if (mode.size == 1) continue;
    if (mode.kind == ModeKind::replicate) mode.axis = 0;
    if (mode.kind != ModeKind::distribute) mode.stride = 0;
    if (!result.empty() && continues(result.back(), mode)) {
      result.back().size *= mode.size;
    } else {
      result.push_back(mode);
    }
  }
  return result;
}

std::vector<Mode> with_axes_swapped(std::vector<Mode> modes) {
  for (Mode& mode : modes) {
    if (mode.kind != ModeKind::replicate) mode.axis = 1 - mode.axis;
  }
  return modes;
}

std::string modes_text(const std::vector<Mode>& modes) {
  std::string text;
  for (const Mode& mode : modes) {
    if (!text.empty()) text += ',';
    switch (mode.kind) {
      case ModeKind::distribute:
        text += fmt::format("{}@{}:{}", mode.size, mode.axis, mode.stride);
        break;
      case ModeKind::replicate:
        text += fmt::format("{}*", mode.size);
        break;
      case ModeKind::partial:
        text += fmt::format("{}+{}", mode.size, mode.axis);
        break;
    }
  }
  return text;
}

void require_multiple(std::string_view layout, std::string_view what, std::int64_t value,
                      std::int64_t factor, SourceLocation where) {
  if (value > 0 && value % factor == 0) return;
  Diagnostic(where, fmt::format("{}: {} is {}, not a positive multiple of {}", layout, what, value,
                                factor))
      .raise();
}

bool LayoutParser::accept(std::string_view token) {
  if (text_.substr(position_, token.size()) != token) return false;
  position_ += token.size();
  return true;
}

void LayoutParser::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("expected '{}'", token));
}

std::int64_t LayoutParser::number() {
  std::int32_t value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc{} || value < 0) fail("expected a number below 2^31");
  position_ += end - begin;
  return value;
}

std::vector<std::int64_t> LayoutParser::shape() {
  std::vector<std::int64_t> shape;
  if (at('|') || at(']') || at('*')) return shape;
  do shape.push_back(number());
  while (accept("x"));
  return shape;
}

std::vector<Mode> LayoutParser::modes(std::size_t rank) {
  std::vector<Mode> modes;
  do {
    Mode mode;
    mode.size = number();
    if (accept("@")) {
      mode.axis = axis(rank);
      expect(":");
      mode.stride = number();
    } else if (accept("+")) {
      mode.axis = axis(rank);
      mode.kind = ModeKind::partial;
    } else if (accept("*")) {
      mode.kind = ModeKind::replicate;
    } else {
      fail("expected '@', '+' or '*'");
    }
    modes.push_back(mode);
  } while (accept(","));
  return modes;
}

void LayoutParser::finish() {
  expect("]");
  if (position_ != text_.size()) fail("more text after the layout");
}

void LayoutParser::check(const std::optional<std::string>& problem) const {
  if (problem)
    Diagnostic(where_, fmt::format("layout {}: {}", text_, *problem)).token(text_).raise();
}

void LayoutParser::fail(std::string_view what) const {
  Diagnostic(where_, fmt::format("layout {}: {} at character {}", text_, what, position_ + 1))
      .token(text_)
      .raise();
}

int LayoutParser::axis(std::size_t rank) {
  const std::int64_t axis = number();
  if (axis >= static_cast<std::int64_t>(rank)) {
    fail(fmt::format("axis {} of a shape of rank {}", axis, rank));
  }
  return static_cast<int>(axis);
}

}  // namespace tilewright::ir
