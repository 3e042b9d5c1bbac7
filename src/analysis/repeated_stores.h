#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"

namespace tilewright::analysis {

// A store to an output that all blocks along an axis of the grid do alike, where there are several.
struct RepeatedStore {
  SourceLocation where;
  std::size_t tensor;  // counted among the kernel's tensors
  std::size_t axis;    // of the grid
  // Where it begins in the grid's first block, on each axis of the tensor. One that ends before
  // gets nothing of it there.
  std::vector<std::int64_t> starts = {};
};
// Those of a kernel in the tile form that sizes alone decide. Stores in conditions and in loops,
// which may turn no time, are left out, and those of which a launch may have no elements.
std::vector<RepeatedStore> repeated_stores(const ir::Kernel& kernel);

// Raises a usage error for the first of them that a launch with this grid makes.
void check_repeated_stores(const std::vector<RepeatedStore>& stores,
                           const std::vector<std::int64_t>& grid,
                           const std::vector<TensorArgument>& tensors);

}  // namespace tilewright::analysis
