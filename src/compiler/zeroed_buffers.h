#pragma once

#include "ir/program.h"

namespace tilewright::compiler {

// The operation that sets all of a buffer to zero before any other comes to it; null where there is
// none. Such buffers may be set together, before the program begins.
const ir::ProgramOperation* first_zeros(const ir::Program& program, int buffer);

}  // namespace tilewright::compiler
