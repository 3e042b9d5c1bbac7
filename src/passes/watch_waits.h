#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Numbers the waits for words and mbarriers of a kernel of the machine form, which then report
// themselves where they last too long. How many there are.
int watch_waits(ir::Kernel& kernel);

}  // namespace tilewright::passes
