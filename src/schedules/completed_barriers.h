#pragma once

#include <set>

#include "ir/ir.h"

namespace tilewright::schedules {

// Barriers that copies to shared memory complete, those that products in tensor memory do, and
// those that threads of other CTAs do.
struct CompletedBarriers {
  std::set<ir::ValueId> by_copies, by_products, by_others;
  explicit CompletedBarriers(const ir::Kernel& kernel);
};

}  // namespace tilewright::schedules
