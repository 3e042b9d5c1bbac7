#pragma once

#include <vector>

#include "simulator/faults/fault_kinds.h"

// Faults that authors of kernels for cores with explicit memories, or their schedule, may make.
namespace tilewright::simulator {

// Behind those of programs, which have other numbers.
const std::vector<FaultKind>& core_fault_kinds();

// Whether instructions are left out.
bool is_left_out(const FaultKind& kind);
// Whether a part of a tensor has an end later than it should.
bool takes_more(const Mutant& mutant);
// The kernel with a copy of what nobody has written in place of an instruction that computes or
// fills: a run shows whether anything that reaches a result is made of what it makes. Without
// operations where the instruction is another.
ir::Kernel without_result(const ir::Kernel& kernel, std::size_t site);

// The kernel with an event, where the mutant's site is, that there is none of: a run shows whether
// it is ever executed.
ir::Kernel core_probe(const ir::Kernel& kernel, std::size_t site);

}  // namespace tilewright::simulator
