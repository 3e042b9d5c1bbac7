#pragma once

#include <string_view>

#include "ir/ir.h"

namespace tilewright {

class Executable;
struct CompileOptions;

// As compile(), of a kernel that is traced already, such as a file's.
Executable compile_traced(const ir::Kernel& kernel, std::string_view target,
                          const CompileOptions& options);

}  // namespace tilewright
