#pragma once

#include "cpu/program.h"

namespace tilewright::cpu {

// Joins functions that go over the same rows, where these do not all stay in the first-level cache.
// Tiles that nothing else needs shrink to the rows of a strip.
void make_strips(Program& program);

}  // namespace tilewright::cpu
