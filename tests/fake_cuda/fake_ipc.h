#pragma once

#include <cstddef>
#include <cstdint>

// Memory that another process opens by a handle: a file in memory, which is named by the process
// and the descriptor that have it.
namespace fake_cuda {

std::uint64_t new_shared(std::size_t bytes);
std::uint64_t open_shared(const char* handle);
// Both are false for other memory.
bool name_shared(std::uint64_t pointer, char* handle);
bool end_shared(std::uint64_t pointer);

}  // namespace fake_cuda
