#pragma once

#include "ir/ir.h"

namespace tilewright::passes {

// Gives every wait and retire its static count: how many commit groups may still be under way when
// its product is complete. Paths that disagree are an error at the wait's line.
void count_waits(ir::Kernel& kernel);

}  // namespace tilewright::passes
