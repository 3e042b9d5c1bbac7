#pragma once

#include <chrono>

namespace tilewright::compiler {

// Since it was made.
class Stopwatch {
 public:
  double milliseconds() const {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace tilewright::compiler
