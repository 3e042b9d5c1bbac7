#pragma once

#include <string>

#include "tilewright/error.h"

namespace tilewright::kernels {

// Who calls a function of the library: what it refuses is shown at the caller's line.
struct Caller {
  const char* function;
  SourceLocation where;
  const char* subject = function;  // of the message

  [[noreturn]] void refuse(const std::string& what, const std::string& fix) const {
    raise_usage(where, function, std::string(subject) + ": " + what, fix);
  }
  void check_positive(const std::string& name, int value) const {
    if (value < 1) refuse(name + " is " + std::to_string(value), name + " is at least 1");
  }
};

}  // namespace tilewright::kernels
