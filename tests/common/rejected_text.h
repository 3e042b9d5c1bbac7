#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "tilewright/error.h"

// Texts of kernels that a verifier must refuse.
namespace tilewright::test {

// A sample with one part replaced, once, and what is said of it.
struct BrokenSample {
  const char* from;
  const char* to;
  const char* message;
};

inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// `what` says in a failed test which text it was.
template <typename Verify>
void expect_rejected(const std::string& text, const std::string& message, const std::string& what,
                     const Verify& verify) {
  try {
    verify(ir::parse_text(text, "broken.tw"));
    ADD_FAILURE() << "accepted: " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal) << error.what();
    EXPECT_NE(error.message().find(message), std::string::npos)
        << "expected: " << message << "\ngot: " << error.message();
  }
}

template <typename Verify>
void expect_rejected(const std::string& sample, const BrokenSample& each, const Verify& verify) {
  expect_rejected(with(sample, each.from, each.to), each.message, each.to, verify);
}

}  // namespace tilewright::test
