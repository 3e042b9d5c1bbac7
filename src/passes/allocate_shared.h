#pragma once

#include "ir/ir.h"

#include "tilewright/error.h"

namespace tilewright::passes {

// The kernel needs more shared memory than a CTA has. How much of it is for conversions between
// register layouts, which no schedule has planned for.
struct SharedMemoryExceeded : Error {
  SharedMemoryExceeded(const Error& error, std::int64_t conversions)
      : Error(error), conversions(conversions) {}
  std::int64_t conversions;
};

// Gives every shared tile and barrier array its offset. More than a CTA has is an error that lists
// what takes it.
void allocate_shared(ir::Kernel& kernel);

}  // namespace tilewright::passes
