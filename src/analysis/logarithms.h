#pragma once

#include <set>
#include <string>

#include "ir/ir.h"

namespace tilewright::analysis {

// The parameters to which a kernel in the tile form stores the logarithm of a number that it has
// computed, or a sum with it in it.
std::set<std::string> stored_logarithms(const ir::Kernel& kernel);

}  // namespace tilewright::analysis
