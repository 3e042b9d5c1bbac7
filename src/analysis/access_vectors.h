#pragma once

#include "ir/ir.h"

namespace tilewright::analysis {

// How many elements of one row of the tensor a thread of load_registers, store_registers or
// red_registers holds side by side, as far as one instruction takes them: up to 16 bytes, and at
// least 4. 1 where it holds fewer. That they lie in memory at a multiple of their bytes is another
// matter.
int elements_at_once(const ir::Operation& access, DType dtype);

}  // namespace tilewright::analysis
