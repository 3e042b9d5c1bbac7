#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/library.h"

namespace tilewright::library {

// Where a launch reads a length.
struct LengthSource {
  std::size_t value, tensor, axis;  // the option's number; the first axis that says it
  std::int64_t excess;              // the axis is so much longer
};
// Of each length that an axis of the parameters says.
std::vector<LengthSource> length_sources(const LibraryKernel& kernel,
                                         const std::vector<const LibraryTensor*>& parameters);

}  // namespace tilewright::library
