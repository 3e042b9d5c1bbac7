#pragma once

#include "tilewright/compile.h"

namespace tilewright {

// Raises what compiling for the target would say of the kernel, at once: nothing is printed,
// assembled or built, and no GPU or compiler needs to be here. `target` is as for compile();
// "cuda" means the target that Tilewright compiles for where none is named. Claims about registers
// and the stack, and spilled registers, show only when a kernel is built.
//
//   check(my_kernel(), "sm_90a");   // in a test of a machine without a GPU
void check(const Kernel& kernel, std::string_view target, const CompileOptions& options = {});

}  // namespace tilewright
