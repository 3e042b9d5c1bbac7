#pragma once

#include <vector>

#include "simulator/faults/fault_kinds.h"

// Faults that authors of kernels for cores with explicit memories, or their schedule, may make.
namespace tilewright::simulator {

// Behind those of programs, which have other numbers.
const std::vector<FaultKind>& core_fault_kinds();

// The kernel with an event, where the mutant's site is, that there is none of: a run shows whether
// it is ever executed.
ir::Kernel core_probe(const ir::Kernel& kernel, std::size_t site);

}  // namespace tilewright::simulator
