#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/program.h"
#include "ir/ir.h"
#include "support/arguments.h"

namespace tilewright::cpu {

// An input that may be the output itself at a launch. Both count among the launch's tensors.
struct InPlace {
  std::size_t input, output;
  // A bit for each axis of the grid: blocks along it read the same of the input, and store to
  // different places of the output.
  std::uint32_t shared_along;
  // A block may need what it has loaded behind its store.
  bool is_read_behind;
};
std::vector<InPlace> find_in_place(const ir::Kernel& kernel, const Program& program);

// Whether they are one at this launch.
bool is_in_place(const InPlace& pair, const Arguments& arguments);

// Raises a usage error where they are, and blocks read what others store.
void check_in_place(const std::vector<InPlace>& pairs, const ir::Kernel& kernel,
                    const Arguments& arguments, const std::vector<std::int64_t>& grid);

}  // namespace tilewright::cpu
