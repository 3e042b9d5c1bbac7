#pragma once

#include <memory>
#include <string>

#include "support/diagnostic.h"

namespace tilewright {

// What an object of the public interface holds. One that was moved from holds nothing, and using it
// raises Error(usage).
template <class T>
T& held(const std::unique_ptr<T>& state, const char* object) {
  if (!state) {
    Diagnostic({}, std::string(object) + ": it was moved from, and holds nothing")
        .fix("use the one that it was moved to")
        .raise();
  }
  return *state;
}

}  // namespace tilewright
