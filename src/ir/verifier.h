#pragma once

#include "ir/ir.h"

namespace tilewright::ir {

// Raises an internal error, with the operation's own source line, unless the kernel is well formed:
// it runs between all passes. Checked are the table of operations (form, operands, results,
// attributes), that values are defined once and before they are used, what blocks carry and yield,
// and the types each operation relates; what a target gives to a kernel, target::verify asks. Of a
// kernel that a hand has written as text it is a usage error.
void verify(const Kernel& kernel, ErrorKind kind = ErrorKind::internal);

}  // namespace tilewright::ir
