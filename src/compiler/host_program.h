#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "ir/program.h"
#include "support/arguments.h"

// Programs of one rank and one stream in the host's memory.
namespace tilewright::compiler {

// The caller's tensors where they lie, and memory for the rest, from multiples of 1024 bytes on.
class HostMemory {
 public:
  HostMemory(const ir::Program& bound, const Arguments& arguments);
  std::byte* at(int buffer) const { return address_[static_cast<std::size_t>(buffer)]; }

 private:
  std::vector<std::vector<std::byte>> own_;
  std::vector<std::byte*> address_;
};

// Does what the bound program queues, in its order: copies and zeros itself, launches by `launch`.
void for_each_launch(const ir::Program& bound, const Arguments& arguments,
                     const std::function<void(const ir::Kernel&, const Arguments&)>& launch);

}  // namespace tilewright::compiler
