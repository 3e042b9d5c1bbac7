#pragma once

#include "codegen/cuda/cuda_printer.h"

namespace tilewright::codegen {

// The kernel of the machine form, by the printer that its target's record names.
CudaSource print(const ir::Kernel& machine);

}  // namespace tilewright::codegen
