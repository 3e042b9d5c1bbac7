#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Tile form: steps of a loop that load one block each, whose place is a number that the step loads,
// such as a page's. So many steps as their blocks have the rows of a product together become one.
// Each is computed as before, behind the one before it: the results have the same bits. Loads of a
// tensor are marked as parts of a stage (Key::joined), which copies fill together, and numbers are
// loaded a step ahead. What is left over keeps steps of its own. Of the copies of a loop that
// peel_masks made this is done to the one without masks. Returns how many loops it changed.
int join_steps(ir::Kernel& kernel);

}  // namespace tilewright::passes
