#pragma once

#include <vector>

#include "tilewright/library.h"

namespace tilewright::kernels {

// Functions of rows and their gradients, and rotary embeddings.
std::vector<LibraryKernel> row_entries();

}  // namespace tilewright::kernels
