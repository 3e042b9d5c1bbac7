#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace tilewright {

// A progress bar on a terminal, and nothing on a pipe or in a file:
//
//   schedules [##########..........] 50/100
//
// The line is gone when the bar is, so that what is printed next starts on an empty line.
class ProgressBar {
 public:
  // `descriptor` is standard error.
  ProgressBar(std::string label, int64_t total, int descriptor = 2);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // From any thread.
  void advance(int64_t steps = 1);

 private:
  void draw(int64_t done);

  std::string label_;
  int64_t total_;
  int descriptor_;
  bool shown_;
  std::atomic<int64_t> done_ = 0;
  std::mutex drawing_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace tilewright
