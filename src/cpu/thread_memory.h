#pragma once

#include <cstddef>
#include <cstdint>

#include "tilewright/error.h"

namespace tilewright::cpu {

// So many bytes of this thread's, from a multiple of 64 on. They stay for launches to come, and
// hold anything. Error(unavailable) at the kernel's line where there is no such memory.
std::byte* thread_memory(std::int64_t bytes, SourceLocation where);

}  // namespace tilewright::cpu
