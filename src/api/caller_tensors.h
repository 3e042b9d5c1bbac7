#pragma once

#include <cstddef>

#include "ir/program.h"

// The tensors of one rank's caller, in a group.
namespace tilewright {

// What the caller passes, as the parameters of a kernel. Raises a usage error, at the operation's
// line, where other ranks reach such a tensor: it is in one process's memory alone.
ir::Kernel signature_of_rank(const ir::Program& recorded);

// Raises a usage error where it is not given as many tensors.
void require_count(const ir::Program& recorded, const ir::Kernel& signature, std::size_t given);

}  // namespace tilewright
