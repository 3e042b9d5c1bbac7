#pragma once

#include "compiler/target.h"
#include "tilewright/library.h"

namespace tilewright::library {

// The kernel that choose_schedule() chooses for the target; for the interpreter its tile-level
// definition.
Kernel trace_entry(const LibraryKernel& entry, const OptionValues& options,
                   const compiler::Target& target);

}  // namespace tilewright::library
