#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/call.h"

namespace tilewright::cpu {

// Lets the calls of a strip, of so many rows, ask for what the next strip reads and writes in
// memory, but for what goes past the caches. What lies from `begin` to before `end` is near
// already.
void plan_ahead(std::vector<CallOfStrips>& calls, std::int64_t rows, const std::byte* begin,
                const std::byte* end);

}  // namespace tilewright::cpu
