#include "fake_cuda/fake_streams.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "fake_cuda/fake_cuda.h"

extern "C" FakeCudaState fake_cuda_state;

namespace fake_cuda {
namespace {

class Queue {
 public:
  Queue() : thread_([this] { work(); }) {}
  ~Queue() {
    {
      // Else the thread may have looked, and not yet wait: it would sleep for ever.
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (!queue_.empty() || gave_up_) ++fake_cuda_state.ended_queues_with_work;
  }

  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return queue_.empty() && !is_busy_;
  }
  // The work that runs waits until this is so, or the queue ends.
  template <typename Done>
  void poll(const Done& is_done) {
    while (!is_done()) {
      if (is_ending_) {
        gave_up_ = true;
        return;
      }
      std::this_thread::yield();
    }
  }
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return (queue_.empty() && !is_busy_) || is_ending_; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
      if (is_ending_) return;
      const std::function<void()> next = std::move(queue_.front());
      queue_.pop_front();
      is_busy_ = true;
      lock.unlock();
      next();
      lock.lock();
      is_busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_busy_ = false, gave_up_ = false;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

struct Reached {
  std::atomic<int> recorded = 0, reached = 0;
};

// By handle; what others made is in none.
template <typename Object>
class Registry {
 public:
  std::shared_ptr<Object> find(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  const void* add() {
    auto made = std::make_shared<Object>();
    const std::lock_guard lock(mutex_);
    return objects_.emplace(made.get(), made).first->first;
  }
  std::shared_ptr<Object> take(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto node = objects_.extract(handle);
    return node.empty() ? nullptr : node.mapped();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Object>> objects_;
};

// Never destroyed: the process may end while a queue still waits.
Registry<Queue>& queues() {
  static auto* const all = new Registry<Queue>;
  return *all;
}
Registry<Reached>& events() {
  static auto* const all = new Registry<Reached>;
  return *all;
}

}  // namespace

void submit(cuda::Stream stream, std::function<void()> work) {
  if (const auto queue = queues().find(stream)) {
    queue->add(std::move(work));
  } else {
    work();
  }
}

cuda::Stream new_queue() { return static_cast<cuda::Stream>(const_cast<void*>(queues().add())); }
bool end_queue(cuda::Stream stream) { return queues().take(stream) != nullptr; }
void drain(cuda::Stream stream) {
  if (const auto queue = queues().find(stream)) queue->drain();
}

bool is_idle(cuda::Stream stream) {
  const auto queue = queues().find(stream);
  return !queue || queue->is_idle();
}

void wait_for_word(cuda::Stream stream, const void* word, std::int32_t value, bool equal) {
  const auto queue = queues().find(stream);
  if (!queue) return;
  // Not the queue itself, which would then end in its own thread.
  queue->add([queue = queue.get(), word = static_cast<const std::uint32_t*>(word), value, equal] {
    queue->poll([&] {
      const std::uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      const auto past = static_cast<std::int32_t>(now - static_cast<std::uint32_t>(value));
      return equal ? past == 0 : past >= 0;
    });
  });
}

cuda::Event new_event() { return static_cast<cuda::Event>(const_cast<void*>(events().add())); }
bool end_event(cuda::Event event) { return events().take(event) != nullptr; }

void record(cuda::Event event, cuda::Stream stream) {
  const auto reached = events().find(event);
  if (!reached) return;
  const int number = ++reached->recorded;
  submit(stream, [reached, number] { reached->reached = number; });
}

void wait_for_event(cuda::Stream stream, cuda::Event event) {
  const auto queue = queues().find(stream);
  const auto reached = events().find(event);
  if (!queue || !reached) return;
  queue->add([queue = queue.get(), reached, number = reached->recorded.load()] {
    queue->poll([&] { return reached->reached >= number; });
  });
}

bool has_come(cuda::Event event) {
  const auto reached = events().find(event);
  return !reached || reached->reached >= reached->recorded;
}

}  // namespace fake_cuda
