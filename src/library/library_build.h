#pragma once

#include "compiler/target.h"
#include "tilewright/library.h"

namespace tilewright::library {

// The choice for a machine whose memories may have no room for the definition: in its stead the
// first of LibraryKernel::blocks that compiles for the target. Where none does, the last one, whose
// error says what has no room. Of a program these are one kernel, and come before the definition,
// which serves where none of them compiles. Targets without such memories keep their choice.
ScheduleChoice fitting(const LibraryKernel& kernel, const ScheduleChoice& choice,
                       const compiler::Target& target);

// Whether a machine takes the kernel, whose memories may have no room or whose units lack a
// function.
bool compiles(const LibraryKernel& kernel, const OptionValues& options,
              const compiler::Target& target);

// The kernel that choose_schedule() chooses for the target, in blocks that fit it; for the
// interpreter its tile-level definition.
Kernel trace_entry(const LibraryKernel& entry, const OptionValues& options,
                   const compiler::Target& target);
// The same of an operation that is a program.
Program trace_program(const LibraryKernel& entry, const OptionValues& options,
                      const compiler::Target& target);

}  // namespace tilewright::library
