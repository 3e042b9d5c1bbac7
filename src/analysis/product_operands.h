#pragma once

#include <set>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// The register tiles that the products behind a pending value read: its own A, those of the
// products that it continues, and, carried by loops and conditions, those of every path.
class ProductOperands {
 public:
  ProductOperands(const ir::Kernel& kernel, const ir::Block& role);
  const std::set<ir::ValueId>& of(ir::ValueId pending) const { return operands_of_[pending]; }

 private:
  void collect(const ir::Kernel& kernel, const ir::Block& block);
  void flow(ir::ValueId from, ir::ValueId to);

  std::vector<std::set<ir::ValueId>> operands_of_;
};

}  // namespace tilewright::analysis
