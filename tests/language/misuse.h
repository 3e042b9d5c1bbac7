#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "common/error_text.h"

namespace tilewright::test {

// Checks the error of a misuse: it names a line of `file`, prints that line with its caret under
// `caret`, and says every one of `parts`.
template <typename Action>
void expect_misuse(const char* file, const std::string& caret,
                   const std::vector<std::string>& parts, const Action& action) {
  const std::string text = usage_error_of(action);
  std::istringstream lines(text);
  std::string first, source, marker;
  std::getline(lines, first);
  std::getline(lines, source);
  std::getline(lines, marker);
  EXPECT_NE(first.find(std::string(file) + ":"), std::string::npos) << text;
  const std::size_t column = marker.find('^');
  if (column == std::string::npos || column >= source.size()) {
    ADD_FAILURE() << "no line with a caret:\n" << text;
  } else {
    EXPECT_EQ(source.substr(column, caret.size()), caret) << text;
  }
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\n" << text;
  }
}

}  // namespace tilewright::test
