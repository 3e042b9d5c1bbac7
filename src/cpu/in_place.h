#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  // Blocks may load more than what they store themselves, or need it behind their stores.
  bool needs_copy;
};
std::vector<InPlace> find_in_place(const ir::Kernel& kernel, const Program& program);

// A launch with copies of inputs, which its stores leave as they were.
struct CopiedInputs {
  Arguments arguments;
  std::vector<std::vector<std::byte>> memory;
};
// Of the inputs that are outputs at this launch and need it; none where none does.
std::optional<CopiedInputs> copy_inputs(const std::vector<InPlace>& pairs,
                                        const Arguments& arguments);

// Raises a usage error where they are, and blocks read what others store.
void check_in_place(const std::vector<InPlace>& pairs, const ir::Kernel& kernel,
                    const Arguments& arguments, const std::vector<std::int64_t>& grid);

}  // namespace tilewright::cpu
