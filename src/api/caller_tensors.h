#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"

// The tensors that callers pass.
namespace tilewright {

// What the caller passes, as the parameters of a kernel.
ir::Kernel signature_of_rank(const ir::Program& recorded);

// Raises a usage error where it is not given as many tensors.
void require_count(const ir::Program& recorded, const ir::Kernel& signature, std::size_t given);

// What a program is bound to, for comparison with that of another run.
std::vector<std::int64_t> sizes_of(const Arguments& arguments);

}  // namespace tilewright
