#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tilewright::cpu {

// Blocks that do something in the order of their numbers. They begin in that order, so that the
// oldest one never waits.
class Turns {
 public:
  // Until all blocks before have ended.
  void await(std::int64_t block) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return next_ == block; });
  }
  void end(std::int64_t block) {
    await(block);
    const std::lock_guard lock(mutex_);
    ++next_;
    ended_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::int64_t next_ = 0;
};

}  // namespace tilewright::cpu
