#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tilewright/error.h"

namespace tilewright::test {

// The whole text of the usage error that `action` raises; "" after a test failure when it raises
// none, or one of another kind.
template <typename Action>
std::string usage_error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was raised";
  return "";
}

}  // namespace tilewright::test
