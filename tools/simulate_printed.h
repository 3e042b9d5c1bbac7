#pragma once

#include "command.h"
#include "compiler/target.h"
#include "library/kernel_source.h"
#include "library/program_simulation.h"

namespace tilewright::tools {

// `simulate --printed`: the PTX of the printed kernel beside its machine form.
int simulate_printed(const Request& request, const library::KernelSource& source,
                     const compiler::Target& target);

// Of a library's operation that is a program, bound, with the buffers that callers pass.
int simulate_printed_program(const Request& request, const ir::Program& program,
                             const std::vector<std::vector<ir::Kernel>>& forms,
                             const std::vector<HostTensor>& before, std::int64_t multiprocessors);

// `simulate FILE.ptx`: PTX that any compiler made.
int simulate_ptx(const Request& request);

}  // namespace tilewright::tools
