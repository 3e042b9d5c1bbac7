#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tilewright {

unsigned thread_count(unsigned wanted) {
  return std::max(wanted ? wanted : std::thread::hardware_concurrency(), 1u);
}

void in_parallel(unsigned threads, std::size_t count,
                 const std::function<void(std::size_t i, unsigned thread)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed = count;
  const auto worker = [&](unsigned thread) {
    std::size_t i = 0;
    try {
      while ((i = next++) < count) work(i, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        failure = std::current_exception();
      }
      next = count;
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned thread = 1; thread < std::min<std::size_t>(threads, count); ++thread) {
      others.emplace_back(worker, thread);
    }
  } catch (const std::system_error&) {
    // The threads that there are do the rest.
  }
  worker(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tilewright
