#pragma once

#include <vector>

#include "simulator/faults/fault_kinds.h"

// Faults that authors of kernels for cores with explicit memories, or their schedule, may make.
namespace tilewright::simulator {

// Behind those of programs, which have other numbers.
const std::vector<FaultKind>& core_fault_kinds();

// Numbers of kinds of which more is asked.
inline constexpr int kStageKind = 48, kInstructionKind = 50, kLimitKind = 55;

class Sites;
// Whether two windows are one part of one memory.
bool are_one_window(const Sites& sites, ir::ValueId a, ir::ValueId b);
// Whether a part of a tensor has an end later than it should, or earlier.
bool takes_more(const Mutant& mutant);
bool takes_less(const Mutant& mutant);
// Of a mutant that leaves an instruction out which computes or fills, or that changes the stage
// into which it writes: the kernel with a copy of what nobody has written in its place. A run shows
// whether anything that reaches a result is made of what it makes. Without operations for others.
ir::Kernel without_result(const ir::Kernel& kernel, const FaultKind& kind, std::size_t site);
// Of a mutant that leaves a choice out of which one part lies where the result does: the kernel
// with what nobody has written as the other part. A run shows whether that is ever chosen.
ir::Kernel without_choice(const ir::Kernel& kernel, const FaultKind& kind, std::size_t site);

// Whether the mutant leaves a choice out that puts zeros where its condition does not hold.
bool hides_by_zero(const ir::Kernel& kernel, const FaultKind& kind, std::size_t site);
// Of a mutant that moves less than it should to scratch memory, or from there: what the mutant
// makes of the kernel, with another number in place of what it leaves. A run shows whether anything
// that reaches a result is made of that.
ir::Kernel with_other_rest(const ir::Kernel& kernel, const FaultKind& kind, const Mutant& mutant);

// The kernel with an event, where the mutant's site is, that there is none of: a run shows whether
// it is ever executed.
ir::Kernel core_probe(const ir::Kernel& kernel, std::size_t site);

}  // namespace tilewright::simulator
