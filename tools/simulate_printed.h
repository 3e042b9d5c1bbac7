#pragma once

#include "command.h"
#include "compiler/target.h"
#include "library/kernel_source.h"

namespace tilewright::tools {

// `simulate --printed`: the PTX of the printed kernel beside its machine form.
int simulate_printed(const Request& request, const library::KernelSource& source,
                     const compiler::Target& target);

}  // namespace tilewright::tools
