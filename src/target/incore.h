#pragma once

#include <vector>

#include "target/core.h"
#include "target/target.h"

// Cores with explicit memories, which are simulated only. Three of them, so that nobody takes one
// for the rule.
namespace tilewright::target {

// A matrix core and two vector cores beside it, which share nothing but global memory.
Target incore();
// One core with all units, and ways between its accumulators and its vectors.
Target incore_unified();
// Two memories of 128 partitions, and a sequencer for each unit.
Target incore_partitions();

// What all of them are: `core` with the way of a kernel.
Target core_target(std::string name, std::string chips, Core core);
// Of those with Left, Right and Acc.
CoreProduct fractal_product();
// What vector units lack is the same on each.
std::vector<CoreFunctions> vector_functions(std::vector<CoreFunctions> units);

}  // namespace tilewright::target
