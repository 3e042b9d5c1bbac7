#pragma once

#include "ptx/module.h"

namespace tilewright::ptx {

// Sets Instruction::join of each branch to the first instruction that every way from it comes to.
void find_joins(Kernel& kernel);

}  // namespace tilewright::ptx
