#pragma once

#include <set>

#include "schedules/placement.h"

namespace tilewright::schedules {

// Products that warpgroups issue in turn, in every iteration the first warpgroup first: those whose
// first operand each of them computes from what it has loaded. Left alone, all warpgroups would
// compute at one time and multiply at another; in turn, one computes while the tensor core works
// for another.
class Turns {
 public:
  explicit Turns(const Placement& placement);
  bool any() const { return !products_.empty(); }
  bool takes(const ir::Operation& product) const { return products_.count(&product) != 0; }

 private:
  void visit(const ir::Block& block, bool in_loop);
  bool of_own_rows(ir::ValueId value) const;
  bool computed_from_loads(const ir::Block& block, const ir::Operation& product) const;

  const Placement& placement_;
  std::set<const ir::Operation*> products_;
};

}  // namespace tilewright::schedules
