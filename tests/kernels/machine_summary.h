#pragma once

#include <string>

#include "ir/ir.h"

namespace tilewright::kernels {

// What a reviewer wants to know of a machine form, in a few lines: the launch, what lies in shared
// memory as stages x rows x columns, barriers with their arrivals, and of each role the warps, the
// registers of a thread and how often each operation is written down, index arithmetic left out.
std::string summary_of(const ir::Kernel& machine);

}  // namespace tilewright::kernels
