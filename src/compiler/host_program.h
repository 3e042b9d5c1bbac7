#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "ir/program.h"
#include "support/arguments.h"

// Programs in the host's memory.
namespace tilewright::compiler {

// The caller's tensors where they lie, in the order of the program's signature, and memory for the
// rest, from multiples of 1024 bytes on.
class HostMemory {
 public:
  HostMemory(const ir::Program& bound, const Arguments& arguments);
  std::byte* at(int buffer, int rank) const {
    return address_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
  }

 private:
  std::vector<std::vector<std::byte>> own_;
  std::vector<std::vector<std::byte*>> address_;  // of each rank, each buffer's
};

enum class Streams { in_turn, on_threads };

// Does what the bound program queues in its first run: copies, zeros and words itself, launches by
// `launch`, one after the other. Each stream goes as far as its waits let it, or on a thread of its
// own: `launch` is then called from several at a time. Raises a usage error where none of them can
// go on, and what `launch` throws.
void for_each_launch(const ir::Program& bound, const Arguments& arguments,
                     const std::function<void(const ir::Kernel&, const Arguments&)>& launch,
                     Streams streams = Streams::in_turn);

}  // namespace tilewright::compiler
