#include "cpu/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cpu/processors.h"
#include "support/diagnostic.h"

namespace tilewright::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread looks for more work before it sleeps.
constexpr std::chrono::microseconds kSpin{50};

thread_local bool inside = false;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Numbers that threads take one by one. It has a line of memory of its own.
struct alignas(64) Range {
  std::optional<std::size_t> take() {
    if (next.load(std::memory_order_relaxed) >= end) return std::nullopt;
    const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
    return i < end ? std::optional(i) : std::nullopt;
  }
  std::atomic<std::size_t> next = 0;
  std::size_t end = 0;
};

// One call of parallel_for.
struct Job {
  Job(std::size_t count, unsigned most, const Work& what, Dealing dealing)
      : places(std::max(most, 1u)), work(what), ranges(dealing == Dealing::by_ranges ? places : 1) {
    const std::size_t each = count / ranges.size(), rest = count % ranges.size();
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].next = begin;
      begin = ranges[i].end = begin + each + (i < rest ? 1 : 0);
    }
  }

  // `place`: the thread's, among those that there are.
  void run(std::size_t place) {
    const unsigned thread = threads.fetch_add(1, std::memory_order_relaxed);
    if (thread >= places) return;
    inside = true;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      run(ranges[(place + i) % ranges.size()], thread);
    }
    inside = false;
  }

  void run(Range& range, unsigned thread) {
    std::optional<std::size_t> i;
    try {
      while ((i = range.take()) && *i < failed.load(std::memory_order_relaxed)) work(*i, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (*i < failed) {
        failed = *i;
        failure = std::current_exception();
      }
    }
  }

  const unsigned places;  // for so many threads
  const Work& work;
  std::vector<Range> ranges;
  std::atomic<unsigned> threads = 0;  // that have taken part
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<std::size_t> failed = SIZE_MAX;  // the smallest
};

// Threads that take part in one job at a time.
class Pool {
 public:
  // Never destroyed: its threads may run while the program ends.
  static Pool& instance() {
    static std::atomic<Pool*> pool = nullptr;
    static std::once_flag once;
    std::call_once(once, [] {
      pool = new Pool;
      // A child has the memory of the pool and none of its threads: it starts another.
      pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
    });
    return *pool;
  }

  // False where another thread of the host's has a job at hand.
  bool run(unsigned threads, Job& job) {
    const std::unique_lock only(callers_, std::try_to_lock);
    if (!only.owns_lock()) return false;
    start_threads(threads - 1);
    keep_off_caller();
    const auto helpers = std::min<std::size_t>(threads - 1, threads_.size());
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      helpers_ = helpers;
      ++generation_;
    }
    wake_.notify_all();
    job.run(0);
    close_job();
    return true;
  }

 private:
  void start_threads(std::size_t count) {
    try {
      while (threads_.size() < count) {
        threads_.reserve(count);
        std::thread thread([this, place = threads_.size() + 1] { serve(place); });
        threads_.push_back(thread.native_handle());
        thread.detach();
        CPU_ZERO(&allowed_);
      }
    } catch (const std::system_error&) {
      // The threads that there are do the rest.
    }
  }

  // The system wakes a thread on the processor of the one that wakes it, where others are busy too.
  // It would wait there until the caller sleeps. So helpers may go where the caller may, but not to
  // the processor that it is on.
  void keep_off_caller() {
    cpu_set_t allowed;
    const int own = sched_getcpu();
    if (own < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    if (CPU_COUNT(&allowed) > 1) CPU_CLR(static_cast<unsigned>(own), &allowed);
    if (CPU_EQUAL(&allowed, &allowed_)) return;
    allowed_ = allowed;
    for (const pthread_t thread : threads_) {
      pthread_setaffinity_np(thread, sizeof(allowed), &allowed);
    }
  }

  // No helper enters any more; those that did end.
  void close_job() {
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
      helpers_ = 0;
    }
    const Clock::time_point start = Clock::now();
    while (running_.load(std::memory_order_acquire) != 0) {
      if (Clock::now() - start < kSpin) {
        pause();
        continue;
      }
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [this] { return running_.load(std::memory_order_acquire) == 0; });
    }
  }

  void serve(std::size_t place) {
    std::uint64_t seen = 0;
    while (true) {
      await(seen);
      Job* job = nullptr;
      {
        const std::lock_guard lock(mutex_);
        seen = generation_.load();
        if (place <= helpers_) {
          job = job_;
          running_.fetch_add(1, std::memory_order_relaxed);
        }
      }
      if (job == nullptr) continue;
      job->run(place);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const std::lock_guard lock(mutex_);
        ended_.notify_all();
      }
    }
  }

  void await(std::uint64_t seen) {
    const Clock::time_point start = Clock::now();
    while (generation_.load(std::memory_order_relaxed) == seen) {
      if (Clock::now() - start < kSpin) {
        pause();
        continue;
      }
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
    }
  }

  std::mutex callers_;  // one job at a time
  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<std::size_t> running_ = 0;  // helpers that are in the job
  Job* job_ = nullptr;
  std::size_t helpers_ = 0;         // of the job: the first ones, in each job the same
  std::vector<pthread_t> threads_;  // they never end
  cpu_set_t allowed_ = {};          // to all of them; none: there are new ones
};

// Threads that a host lends; null: there are none, and the pool's serve. One that was lent is kept
// for ever: a call that began with it may still be under way.
std::atomic<const HostThreads*> host_threads = nullptr;

unsigned usable_processors() {
  static const unsigned quota = quota_processors();
  const unsigned allowed = allowed_processors();
  return quota == 0 ? allowed : std::min(allowed, quota);
}

[[noreturn]] void refuse_host(const std::string& what) {
  Diagnostic({}, "the host's parallel_for threw " + what)
      .fix("catch it there: it returns when all of its calls have returned, and throws nothing")
      .raise();
}

// Whether others than the caller have taken part.
bool deal(unsigned threads, Job& job) {
  const HostThreads* const host = host_threads.load(std::memory_order_acquire);
  if (host == nullptr) return Pool::instance().run(threads, job);
  try {
    host->parallel_for(
        host->context, static_cast<std::int32_t>(threads),
        [](void* what, std::int32_t part) {
          static_cast<Job*>(what)->run(static_cast<std::size_t>(part));
        },
        &job);
  } catch (const std::exception& error) {
    refuse_host("\"" + std::string(error.what()) + '"');
  } catch (...) {
    refuse_host("what is no std::exception");
  }
  return false;
}

}  // namespace

unsigned thread_count() {
  const char* const text = std::getenv("TILEWRIGHT_THREADS");
  if (text == nullptr || *text == '\0') {
    const HostThreads* const host = host_threads.load(std::memory_order_acquire);
    return host == nullptr ? usable_processors() : host->count;
  }
  unsigned number = 0;
  const char* const end = text + std::strlen(text);
  const auto [last, error] = std::from_chars(text, end, number);
  if (error != std::errc() || last != end || number == 0 || number > kMostThreads) {
    Diagnostic({}, "TILEWRIGHT_THREADS is \"" + std::string(text) +
                       "\", and a number of threads is 1 to " + std::to_string(kMostThreads))
        .fix(
            "set it to how many threads kernels may use on the CPU, or leave it out for all of "
            "this process's cores")
        .raise();
  }
  return number;
}

void use_host_threads(const HostThreads& lent) {
  static std::mutex mutex;
  static auto& all = *new std::deque<HostThreads>;
  const std::lock_guard lock(mutex);
  if (lent.parallel_for == nullptr) {
    host_threads = nullptr;
    return;
  }
  host_threads = &all.emplace_back(lent);
}

bool in_parallel_for() { return inside; }

void parallel_for(unsigned threads, std::size_t count, const Work& work, Dealing dealing) {
  const auto most = static_cast<unsigned>(std::min<std::size_t>(threads, count));
  if (inside) {
    for (std::size_t i = 0; i < count; ++i) work(i, 0);
    return;
  }
  Job job(count, most, work, dealing);
  // What nobody has begun the caller does: a host may have no threads to lend at the moment.
  if (most < 2 || !deal(most, job)) job.run(0);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace tilewright::cpu
