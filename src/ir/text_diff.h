#pragma once

#include <string>
#include <string_view>
#include <vector>

// What a pass changed, as text.
namespace tilewright::ir {

struct DiffLine {
  enum class Kind : char { same = ' ', removed = '-', added = '+' };
  Kind kind = Kind::same;
  std::string text;  // of the new kernel, but for removed lines
};

// The difference of two kernels' texts (to_text). A line is the same when it differs in the numbers
// of its values alone, as long as one renumbering explains all of them: a pass that drops an
// operation renumbers everything behind it.
std::vector<DiffLine> text_diff(std::string_view before, std::string_view after);

// The changed lines, each with `context` lines around it; "..." stands for what is left out. Empty
// where nothing changed.
std::string format_diff(const std::vector<DiffLine>& lines, int context = 2);

}  // namespace tilewright::ir
