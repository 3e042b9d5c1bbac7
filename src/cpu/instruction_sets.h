#pragma once

#include <string>
#include <vector>

namespace tilewright::cpu {

// The names of those that this machine has, the best last (kernels.h).
std::vector<std::string> instruction_sets();

}  // namespace tilewright::cpu
