#pragma once

#include <cstddef>
#include <functional>

namespace tilewright {

// So many threads; 0: one for each core.
unsigned thread_count(unsigned wanted);

// Calls `work(i, thread)` for all i below the count, each once and in their order, from up to so
// many threads, of which the caller is the first. Once one throws no other i is begun; when all
// have ended, what was thrown for the smallest i is thrown again.
void in_parallel(unsigned threads, std::size_t count,
                 const std::function<void(std::size_t i, unsigned thread)>& work);

}  // namespace tilewright
