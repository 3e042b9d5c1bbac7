#pragma once

#include "simulator/machine/prepared_kernel.h"

namespace tilewright::simulator {

// Marks what need not be computed when only control flow, scalars, addresses, synchronisation and
// checks are asked for: all that no condition depends on. A condition on register values that come
// from a product or from shared memory is left without them, and both of its outcomes are then
// drawn at random. Raises a usage error where an index is read that the kernel itself computes in
// such values.
void keep_control_only(PreparedKernel& kernel, const Arguments& arguments);

}  // namespace tilewright::simulator
