#pragma once

#include <vector>

#include "tilewright/kernel.h"

namespace tilewright::codegen {

// The kernels of the programs in examples/.
std::vector<Kernel> example_kernels();

}  // namespace tilewright::codegen
