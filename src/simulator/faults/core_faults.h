#pragma once

#include <vector>

#include "simulator/faults/fault_kinds.h"

// Faults that authors of kernels for cores with explicit memories, or their schedule, may make.
namespace tilewright::simulator {

// Behind those of programs, which have other numbers.
const std::vector<FaultKind>& core_fault_kinds();

// Whether a part of a tensor has an end later than it should.
bool takes_more(const Mutant& mutant);
// Of a mutant that leaves an instruction out which computes or fills, or that changes the stage
// into which it writes: the kernel with a copy of what nobody has written in its place. A run shows
// whether anything that reaches a result is made of what it makes. Without operations for others.
ir::Kernel without_result(const ir::Kernel& kernel, const FaultKind& kind, std::size_t site);
// Of a mutant that leaves a choice out of which one part lies where the result does: the kernel
// with what nobody has written as the other part. A run shows whether that is ever chosen.
ir::Kernel without_choice(const ir::Kernel& kernel, const FaultKind& kind, std::size_t site);

// The kernel with an event, where the mutant's site is, that there is none of: a run shows whether
// it is ever executed.
ir::Kernel core_probe(const ir::Kernel& kernel, std::size_t site);

}  // namespace tilewright::simulator
