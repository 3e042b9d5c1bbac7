#pragma once

#include "ir/ir.h"

#include "tilewright/error.h"

namespace tilewright::passes {

// The kernel needs more shared memory than a CTA has.
struct SharedMemoryExceeded : Error {
  SharedMemoryExceeded(const Error& error, std::int64_t conversions, std::int64_t excess)
      : Error(error), conversions(conversions), excess(excess) {}
  // Bytes of conversions between register layouts, which no schedule has planned for.
  std::int64_t conversions;
  std::int64_t excess;  // bytes that are missing
};

// Gives every shared tile and barrier array its offset. More than a CTA has is an error that lists
// what takes it.
void allocate_shared(ir::Kernel& kernel);

}  // namespace tilewright::passes
