#pragma once

#include <string_view>

#include "driver/target.h"
#include "tilewright/compile.h"
#include "tilewright/library.h"

namespace tilewright::driver {

// The kernel as it is to be built for the target: its tile-level definition for the interpreter,
// else the schedule that is set or the first for the architecture. Raises when there is none, or
// the one that is set is for another target.
Kernel trace_entry(const LibraryKernel& entry, const OptionValues& options, const Target& target);

Executable compile_entry(const LibraryKernel& entry, const OptionValues& options,
                         std::string_view target, const CompileOptions& how = {});

}  // namespace tilewright::driver
