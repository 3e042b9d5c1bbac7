#pragma once

#include <cstddef>
#include <functional>

namespace tilewright::cpu {

// As many threads as TILEWRIGHT_THREADS says; else as many as this process may use, by its affinity
// and its cgroup's quota. What is no number from 1 on is a usage error.
unsigned thread_count();

// Calls `work(i, thread)` for all i below the count, each once and in their order, from up to so
// many threads, which are numbered from 0 and of which the caller is one. The others wait between
// calls, first spinning, then asleep. Once one throws no other i is begun; when all have ended,
// what was thrown for the smallest i is thrown again. Called from within such a call, or in a
// process forked from one that had threads, it does all itself or starts threads of its own.
using Work = std::function<void(std::size_t i, unsigned thread)>;
void parallel_for(unsigned threads, std::size_t count, const Work& work);

// Whether this thread runs a part of such a call.
bool in_parallel_for();

}  // namespace tilewright::cpu
