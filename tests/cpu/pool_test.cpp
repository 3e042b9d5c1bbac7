#include "cpu/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/error_text.h"
#include "tilewright/error.h"

namespace tilewright::cpu {
namespace {

// Sets TILEWRIGHT_THREADS for a while; null: unsets it.
class Variable {
 public:
  explicit Variable(const char* value) {
    if (const char* const text = std::getenv(kName)) before_ = text;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static constexpr const char* kName = "TILEWRIGHT_THREADS";
  static void set(const char* value) {
    value == nullptr ? unsetenv(kName) : setenv(kName, value, 1);
  }
  std::optional<std::string> before_;
};

constexpr Dealing kDealings[] = {Dealing::in_order, Dealing::by_ranges};

std::int64_t sum_of(unsigned threads, std::size_t count) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(threads, count,
               [&](std::size_t i, unsigned) { sum += static_cast<std::int64_t>(i) + 1; });
  return sum;
}

void expect_each_once(unsigned threads, std::size_t count, Dealing dealing) {
  std::vector<std::atomic<int>> done(count);
  std::atomic<unsigned> highest = 0;
  const auto work = [&](std::size_t i, unsigned thread) {
    ++done[i];
    unsigned old = highest;
    while (thread > old && !highest.compare_exchange_weak(old, thread)) {
    }
  };
  parallel_for(threads, count, work, dealing);
  for (const std::atomic<int>& each : done) EXPECT_EQ(each, 1);
  EXPECT_LT(highest, threads);
}

TEST(PoolTest, DoesEachOnce) {
  for (const unsigned threads : {1u, 2u, 7u}) {
    for (const std::size_t count : {0u, 1u, 2u, 100u}) {
      for (const Dealing dealing : kDealings) expect_each_once(threads, count, dealing);
    }
  }
}

// Waits for some seconds at most.
template <typename Holds>
bool comes_to_hold(Holds holds) {
  for (int turn = 0; turn < 5000 && !holds(); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

TEST(PoolTest, EachThreadBeginsWithItsOwnRange) {
  constexpr std::size_t kCount = 9;
  for (int round = 0; round < 5; ++round) {
    std::mutex mutex;
    std::map<std::thread::id, std::size_t> first;
    const auto have_begun = [&] {
      const std::lock_guard lock(mutex);
      return first.size() == 2;
    };
    const auto work = [&](std::size_t i, unsigned) {
      {
        const std::lock_guard lock(mutex);
        first.emplace(std::this_thread::get_id(), i);
      }
      EXPECT_TRUE(comes_to_hold(have_begun));
    };
    parallel_for(2, kCount, work, Dealing::by_ranges);
    for (const auto& [thread, i] : first) {
      EXPECT_EQ(i, thread == std::this_thread::get_id() ? 0u : 5u);
    }
  }
}

TEST(PoolTest, WhoIsDoneTakesWhatIsLeftOfOtherRanges) {
  constexpr std::size_t kCount = 9;
  for (const std::size_t held : {0u, 5u}) {
    std::atomic<std::size_t> done = 0;
    const auto work = [&](std::size_t i, unsigned) {
      const auto others_are = [&] { return done == kCount - 1; };
      EXPECT_TRUE(i != held || comes_to_hold(others_are)) << held;
      ++done;
    };
    parallel_for(2, kCount, work, Dealing::by_ranges);
    EXPECT_EQ(done, kCount);
  }
}

TEST(PoolTest, RaisesTheFirstFailure) {
  const auto work = [](std::size_t i, unsigned) {
    if (i >= 5) throw std::runtime_error(std::to_string(i));
  };
  for (int round = 0; round < 20; ++round) {
    try {
      parallel_for(4, 100, work, kDealings[round % 2]);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "5");
    }
  }
  EXPECT_EQ(sum_of(4, 100), 5050);
}

// Also where another is raised behind it.
TEST(PoolTest, AFailureThatFollowsIsNotTheFirst) {
  std::atomic<bool> begun = false, raised = false;
  const auto await = [](const std::atomic<bool>& flag) {
    for (int turn = 0; turn < 500 && !flag; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  try {
    parallel_for(2, 2, [&](std::size_t i, unsigned) {
      if (i == 0) {
        await(begun);
        raised = true;
        throw std::runtime_error("0");
      }
      begun = true;
      await(raised);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw std::runtime_error("1");
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "0");
  }
}

// What has not begun when one fails is left out, by threads that have begun too.
TEST(PoolTest, NothingBeginsBehindAFailure) {
  constexpr std::size_t kCount = 200;
  std::atomic<std::size_t> begun = 0;
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const auto work = [&](std::size_t i, unsigned) {
    ++begun;
    if (i > 0) return pause();
    for (int turn = 0; turn < 500 && begun < 2; ++turn) pause();
    throw std::runtime_error("0");
  };
  EXPECT_THROW(parallel_for(2, kCount, work), std::runtime_error);
  EXPECT_LT(begun, kCount);
}

TEST(PoolTest, NestedCallsAreSerial) {
  std::atomic<int> count = 0;
  parallel_for(3, 6, [&](std::size_t, unsigned) {
    EXPECT_TRUE(in_parallel_for());
    const std::thread::id own = std::this_thread::get_id();
    parallel_for(3, 5, [&](std::size_t, unsigned thread) {
      EXPECT_EQ(std::this_thread::get_id(), own);
      EXPECT_EQ(thread, 0u);
      ++count;
    });
    EXPECT_TRUE(in_parallel_for());
  });
  EXPECT_EQ(count, 30);
  EXPECT_FALSE(in_parallel_for());
}

TEST(PoolTest, SeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> sum = 0;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) sum += sum_of(3, 20);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 50 * 210);
}

cpu_set_t own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

// Where the pool's threads may run while the caller does, which waits for one of them.
std::vector<cpu_set_t> processors_of_helpers() {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> helpers = 0;
  std::mutex mutex;
  std::vector<cpu_set_t> sets;
  parallel_for(3, 3, [&](std::size_t, unsigned) {
    if (std::this_thread::get_id() == caller) {
      for (int turn = 0; turn < 1000 && helpers == 0; ++turn) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return;
    }
    const std::lock_guard lock(mutex);
    sets.push_back(own_processors());
    ++helpers;
  });
  EXPECT_FALSE(sets.empty());
  return sets;
}

// A thread that is woken on the caller's processor would wait until the caller sleeps.
TEST(PoolTest, HelpersKeepOffTheCallersProcessor) {
  const cpu_set_t before = own_processors();
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "there is one processor";
  int stayed = 0;
  for (int round = 0; round < 100 && stayed < 3; ++round) {
    const int own = sched_getcpu();
    const std::vector<cpu_set_t> sets = processors_of_helpers();
    if (sched_getcpu() != own) continue;
    ++stayed;
    cpu_set_t wanted = before;
    CPU_CLR(static_cast<unsigned>(own), &wanted);
    for (const cpu_set_t& set : sets) EXPECT_TRUE(CPU_EQUAL(&set, &wanted)) << own;
  }
  EXPECT_GT(stayed, 0);
}

// Also one that begins behind the first launch.
TEST(PoolTest, HelpersFollowTheCallersAffinity) {
  const cpu_set_t before = own_processors();
  processors_of_helpers();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const std::vector<cpu_set_t> sets = processors_of_helpers();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  for (const cpu_set_t& set : sets) EXPECT_TRUE(CPU_EQUAL(&set, &one));
}

// A child has none of its parent's threads, and starts its own.
TEST(PoolTest, SurvivesFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a child that starts threads";
#endif
  EXPECT_EQ(sum_of(3, 50), 1275);
  const pid_t child = fork();
  if (child == 0) _exit(sum_of(3, 50) == 1275 && sum_of(3, 50) == 1275 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(sum_of(3, 50), 1275);
}

// A loop of a host's, by its own threads or by the caller alone.
struct Host {
  int threads = 0;  // 0: the caller calls all parts
  std::atomic<int> calls = 0, parts = 0;

  explicit Host(int count) : threads(count) { use_host_threads({&Host::parallel_for, this, 3}); }
  ~Host() { use_host_threads({}); }
  static void parallel_for(void* context, std::int32_t parts, HostThreads::Call call, void* work) {
    Host& host = *static_cast<Host*>(context);
    ++host.calls;
    host.parts += parts;
    std::vector<std::thread> threads;
    for (std::int32_t part = 0; part < parts; ++part) {
      if (host.threads == 0) {
        call(work, part);
      } else {
        threads.emplace_back(call, work, part);
      }
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST(PoolTest, AHostLendsItsThreads) {
  const Variable none(nullptr);
  for (const int threads : {0, 3}) {
    Host host(threads);
    EXPECT_EQ(thread_count(), 3u);
    EXPECT_EQ(sum_of(thread_count(), 100), 5050);
    EXPECT_EQ(sum_of(2, 100), 5050);
    EXPECT_EQ(sum_of(thread_count(), 1), 1) << "no part for others";
    EXPECT_EQ(host.calls, 2);
    EXPECT_EQ(host.parts, 5);
    EXPECT_THROW(parallel_for(3, 10, [](std::size_t, unsigned) { throw std::runtime_error("x"); }),
                 std::runtime_error);
    const Variable five("5");
    EXPECT_EQ(thread_count(), 5u) << "the environment says so";
  }
  EXPECT_EQ(sum_of(3, 100), 5050);
}

// One that calls no part, or more than it was asked for.
TEST(PoolTest, AHostThatCountsWrong) {
  use_host_threads({[](void*, std::int32_t, HostThreads::Call, void*) {}, nullptr, 4});
  EXPECT_EQ(sum_of(4, 100), 5050);
  use_host_threads({[](void*, std::int32_t parts, HostThreads::Call call, void* work) {
                      for (std::int32_t part = 0; part < 3 * parts; ++part) call(work, part);
                    },
                    nullptr, 4});
  EXPECT_EQ(sum_of(4, 100), 5050);
  use_host_threads({});
}

TEST(PoolTest, AHostThatThrows) {
  const auto sum = [] { sum_of(4, 100); };
  use_host_threads({[](void*, std::int32_t, HostThreads::Call call, void* work) {
                      call(work, 0);
                      throw std::runtime_error("no threads left");
                    },
                    nullptr, 4});
  EXPECT_THAT(test::usage_error_of(sum),
              testing::HasSubstr("the host's parallel_for threw \"no threads left\""));
  use_host_threads({[](void*, std::int32_t, HostThreads::Call, void*) { throw 7; }, nullptr, 4});
  EXPECT_THAT(test::usage_error_of(sum), testing::HasSubstr("threw what is no std::exception"));
  use_host_threads({});
  EXPECT_EQ(sum_of(4, 100), 5050);
}

// All at once: no more than were asked for have a number, hence a place of their own.
TEST(PoolTest, AHostWithTooManyThreads) {
  use_host_threads({[](void*, std::int32_t parts, HostThreads::Call call, void* work) {
                      std::vector<std::thread> threads;
                      for (std::int32_t part = 0; part < 3 * parts; ++part) {
                        threads.emplace_back(call, work, part);
                      }
                      for (std::thread& thread : threads) thread.join();
                    },
                    nullptr, 4});
  std::atomic<int> done = 0, without_place = 0;
  parallel_for(4, 40, [&](std::size_t, unsigned thread) {
    ++done;
    if (thread >= 4) ++without_place;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  use_host_threads({});
  EXPECT_EQ(done, 40);
  EXPECT_EQ(without_place, 0);
}

TEST(PoolTest, ThreadsFollowTheEnvironment) {
  EXPECT_GE(thread_count(), 1u);
  {
    const Variable three("3");
    EXPECT_EQ(thread_count(), 3u);
  }
  for (const char* wrong : {"0", "-1", "two", "1.5", "99999999999"}) {
    const Variable variable(wrong);
    try {
      thread_count();
      FAIL() << wrong << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(),
                  testing::HasSubstr("TILEWRIGHT_THREADS is \"" + std::string(wrong)));
    }
  }
}

}  // namespace
}  // namespace tilewright::cpu
