#pragma once

#include "cpu/kernels.h"
#include "cpu/program.h"
#include "ir/ir.h"
#include "tilewright/numerics.h"

namespace tilewright::cpu {

// A kernel of the tile form as a program of the table's functions. What the CPU does not know is a
// usage error at the user's line.
Program lower(const ir::Kernel& kernel, const Kernels& kernels, const Numerics& numerics);

}  // namespace tilewright::cpu
