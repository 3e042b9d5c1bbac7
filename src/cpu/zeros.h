#pragma once

#include "cpu/kernels.h"
#include "cpu/program.h"

namespace tilewright::cpu {

// Finds the sums that a loop begins with zeros which nothing needs but products that add to them,
// and factors of them before: they need not be written. Behind place_tiles.
void find_zeros(Program& program, const Kernels& kernels);

}  // namespace tilewright::cpu
