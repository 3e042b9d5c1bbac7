#pragma once

#include "cpu/program.h"

namespace tilewright::cpu {

// In strips: what costs less to compute once more than to store and to load, as an element less its
// row's mean, is computed anew where it is needed. So nobody else needs it, and it stays in
// registers.
void recompute_values(Program& program);

}  // namespace tilewright::cpu
