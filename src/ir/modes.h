#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/layout.h"

// What register and shared layouts have in common: lists of modes, and their text.
namespace tilewright::ir {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kMaximumWarps = 32;

inline Mode distribute(std::int64_t size, int axis, std::int64_t stride) {
  return {size, axis, stride, ModeKind::distribute};
}

inline Mode replicate(std::int64_t size) { return {size, 0, 0, ModeKind::replicate}; }

// The product of the sizes, or something above `limit` once it exceeds that.
std::int64_t total_size(const std::vector<Mode>& modes, std::int64_t limit = std::int64_t{1} << 40);
// Modes of size 1 dropped, adjacent ones that continue each other merged.
std::vector<Mode> merged(const std::vector<Mode>& modes);
std::vector<Mode> with_axes_swapped(std::vector<Mode> modes);
std::string modes_text(const std::vector<Mode>& modes);

// Throws unless `value` is a positive multiple of `factor`.
void require_multiple(std::string_view layout, std::string_view what, std::int64_t value,
                      std::int64_t factor, SourceLocation where);

class LayoutParser {
 public:
  LayoutParser(std::string_view text, SourceLocation where) : text_(text), where_(where) {}

  bool accept(std::string_view token);
  void expect(std::string_view token);
  std::int64_t number();
  std::vector<std::int64_t> shape();
  std::vector<Mode> modes(std::size_t rank);
  // The text has to end here.
  void finish();
  // Throws if the layout that was read has a problem.
  void check(const std::optional<std::string>& problem) const;

 private:
  [[noreturn]] void fail(std::string_view what) const;
  bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }
  int axis(std::size_t rank);

  std::string_view text_;
  SourceLocation where_;
  std::size_t position_ = 0;
};

}  // namespace tilewright::ir
