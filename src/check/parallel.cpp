#include "check/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::checks {

unsigned thread_count(unsigned wanted) {
  return std::max(wanted ? wanted : std::thread::hardware_concurrency(), 1u);
}

void in_parallel(unsigned threads, std::size_t count,
                 const std::function<void(std::size_t, unsigned)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto worker = [&](unsigned number) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i, number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(worker, i);
  worker(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tilewright::checks
