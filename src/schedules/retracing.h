#pragma once

#include <map>

#include "ir/ir.h"
#include "tilewright/kernel.h"

namespace tilewright::schedules {

// A tile kernel's parameters, and peers of them, in the kernel that is recorded from it, by their
// values in the tile form.
struct Parameters {
  std::map<ir::ValueId, Tensor> tensors;
  std::map<ir::ValueId, Scalar> scalars;
};

// Declares the tile kernel's dimensions and parameters once more, in their order.
Parameters redeclare(const ir::Kernel& tile, Kernel& kernel);

}  // namespace tilewright::schedules
