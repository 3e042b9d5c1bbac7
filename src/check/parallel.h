#pragma once

#include <cstddef>
#include <functional>

namespace tilewright::checks {

// So many threads; 0: one for each core.
unsigned thread_count(unsigned wanted);

// Calls `work(i, thread)` for all i below the count, each once, from several threads. What one of
// them throws ends the work, and is thrown again.
void in_parallel(unsigned threads, std::size_t count,
                 const std::function<void(std::size_t, unsigned)>& work);

}  // namespace tilewright::checks
