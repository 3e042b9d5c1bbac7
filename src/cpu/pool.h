#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tilewright::cpu {

inline constexpr unsigned kMostThreads = 4096;

// As many threads as TILEWRIGHT_THREADS says; else as many as a host lends; else as many as the
// calling thread may use, by its affinity and its cgroup's quota. What is no number from 1 on is a
// usage error.
unsigned thread_count();

// Threads of a host's that take the place of the pool's. `parallel_for` calls `call(work, part)`
// once for each part, one after the other or at the same time, and returns when all have returned.
struct HostThreads {
  using Call = void (*)(void* work, std::int32_t part);
  void (*parallel_for)(void* context, std::int32_t parts, Call call, void* work) = nullptr;
  void* context = nullptr;
  unsigned count = 1;
};
// Null for `parallel_for`: the pool's again. Calls that are under way end as they began.
void use_host_threads(const HostThreads& lent);

enum class Dealing {
  in_order,  // the smallest i that is left
  // Each thread begins with a range of its own, which is the same in the next call of as many, and
  // whose memory its caches may still have. Behind it, it takes what is left of others' ranges.
  by_ranges,
};

// Calls `work(i, thread)` for all i below the count, each once, from up to so many threads, which
// are numbered from 0 and of which the caller is one. The others wait between calls, first
// spinning, then asleep. Once one throws no larger i is begun; when all have ended, what was thrown
// for the smallest i is thrown again. Called from within such a call, or in a process forked from
// one that had threads, it does all itself or starts threads of its own.
using Work = std::function<void(std::size_t i, unsigned thread)>;
void parallel_for(unsigned threads, std::size_t count, const Work& work,
                  Dealing dealing = Dealing::in_order);

// Whether this thread runs a part of such a call.
bool in_parallel_for();

}  // namespace tilewright::cpu
