#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "tilewright/error.h"

namespace tilewright::passes {

// The kernel needs more shared memory than a CTA has.
struct SharedMemoryExceeded : Error {
  // A place in shared memory, and what takes it.
  using Use = std::pair<SourceLocation, std::string>;
  SharedMemoryExceeded(const Error& error, std::int64_t conversions, std::int64_t excess,
                       std::vector<Use> uses)
      : Error(error), conversions(conversions), excess(excess), uses(std::move(uses)) {}
  // Bytes of conversions between register layouts, which no schedule has planned for.
  std::int64_t conversions;
  std::int64_t excess;  // bytes that are missing
  std::vector<Use> uses;
};

// Gives every shared tile and barrier array its offset. More than a CTA has is an error that lists
// what takes it.
void allocate_shared(ir::Kernel& kernel);

}  // namespace tilewright::passes
