#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Scheduled form: copies by TMA that fill a stage with one block each of an axis, block behind
// block, such as pages that a table names. Where the blocks follow each other in the tensor too,
// one copy brings several: the stage is filled by as many together as it has, by fewer, or by each
// alone, as the numbers are while the kernel runs. All ways fill it with the same bytes. Numbers
// that are loaded in front of the copies stay alone: these would wait for the last number. Returns
// how many stages have such ways.
int join_copies(ir::Kernel& kernel);

}  // namespace tilewright::passes
