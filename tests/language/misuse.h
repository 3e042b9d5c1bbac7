#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/error_text.h"

namespace tilewright::test {

// Checks the error of a misuse: it names a line of `file`, which is the test's own, prints that
// line with its caret under `caret`, and says every one of `parts` beside it.
template <typename Action>
void misuse(const std::string& caret, const std::vector<std::string>& parts, const Action& action,
            std::string_view file = __builtin_FILE()) {
  const std::string text = whole_usage_error_of(action);
  std::istringstream lines(text);
  std::string first, source, marker;
  std::getline(lines, first);
  std::getline(lines, source);
  std::getline(lines, marker);
  const std::string name(file.substr(file.rfind('/') + 1));
  EXPECT_NE(first.find(name + ":"), std::string::npos) << text;
  const std::size_t column = marker.find('^');
  if (column == std::string::npos || column >= source.size()) {
    ADD_FAILURE() << "no line with a caret:\n" << text;
  } else {
    EXPECT_EQ(source.substr(column, caret.size()), caret) << text;
  }
  const std::string said = without_source_lines(text);
  for (const std::string& part : parts) {
    EXPECT_NE(said.find(part), std::string::npos) << "missing: " << part << "\n" << text;
  }
}

}  // namespace tilewright::test
