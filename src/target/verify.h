#pragma once

#include "ir/ir.h"

namespace tilewright::target {

// ir::verify, and, of a kernel that knows its target, that it fits it: that it asks for no more
// than there is (threads, registers, shared memory, barriers, extents of copies and products), and
// for no operation and no move between memories that the target does not have.
void verify(const ir::Kernel& kernel, ErrorKind kind = ErrorKind::internal);

}  // namespace tilewright::target
