#pragma once

#include <string>

#include "ir/program.h"
#include "tilewright/library.h"

namespace tilewright::library {

// Of a file as TILEWRIGHT_DUMP has it written (ir/program_text.h).
ir::Program read_program(const std::string& path);

// Whether the kernel knows of other ranks: it has symmetric tensors or signals, or asks for its
// rank or how many there are.
bool reaches_ranks(const ir::Kernel& kernel);

// One launch of the kernel in each rank, on buffers of its own for each tensor. `options` holds the
// kernel's dims and scalars.
ir::Program program_of(const ir::Kernel& kernel, int ranks, const OptionValues& options);

}  // namespace tilewright::library
