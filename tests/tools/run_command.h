#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/process.h"

// Runs the command as users do.
namespace tilewright::test {

struct Answer {
  int status = 0;
  std::string output;  // standard output and error together
  nlohmann::json json() const { return nlohmann::json::parse(output); }
};

// Splits at blanks.
inline Answer tilewright(const std::string& line) {
  std::vector<std::string> words = {TILEWRIGHT_COMMAND};
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  const runtime::ProcessResult result = runtime::run_process(words);
  return {result.status, result.output};
}

inline void expect_failure(const std::string& line, int status,
                           const std::vector<std::string>& parts) {
  SCOPED_TRACE(line);
  const Answer answer = tilewright(line);
  EXPECT_EQ(answer.status, status) << answer.output;
  for (const std::string& part : parts) EXPECT_THAT(answer.output, testing::HasSubstr(part));
}

// For what does not need a cubin: building one takes seconds where it is not cached.
class WithoutNvrtc {
 public:
  WithoutNvrtc() { setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1); }
  ~WithoutNvrtc() { unsetenv("TILEWRIGHT_NVRTC"); }
};

}  // namespace tilewright::test
