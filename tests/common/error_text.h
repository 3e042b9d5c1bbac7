#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "tilewright/error.h"

namespace tilewright::test {

// An error's text without the source lines that it shows, each with its caret below. A line is
// the test's own and may have the words that are expected, which would then always be found.
inline std::string without_source_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const auto is_caret = [](const std::string& line) {
    const std::size_t first = line.find_first_not_of(" \t");
    return first != std::string::npos && line.substr(first) == "^";
  };
  std::string rest;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i + 1 < lines.size() && is_caret(lines[i + 1])) {
      ++i;
      continue;
    }
    if (!rest.empty()) rest += '\n';
    rest += lines[i];
  }
  return rest;
}

// The whole text of the usage error that `action` raises, with the source line that it shows; ""
// after a test failure when it raises none, or one of another kind.
template <typename Action>
std::string whole_usage_error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was raised";
  return "";
}

// What the usage error that `action` raises says beside the source line that it shows.
template <typename Action>
std::string usage_error_of(const Action& action) {
  return without_source_lines(whole_usage_error_of(action));
}

}  // namespace tilewright::test
