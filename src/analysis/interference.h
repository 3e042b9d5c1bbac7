#pragma once

#include <set>
#include <utility>

#include "analysis/product_operands.h"
#include "ir/ir.h"

namespace tilewright::analysis {

// Which register tiles (tiles and pending products) of a role may not share registers, because one
// is written while the other is still needed. Operands of an asynchronous product are needed until
// the product is waited for.
class Interference {
 public:
  explicit Interference(const ir::Kernel& kernel, const ir::Block& block);
  bool between(ir::ValueId a, ir::ValueId b) const {
    return graph_.count({a < b ? a : b, a < b ? b : a}) != 0;
  }

 private:
  using Live = std::set<ir::ValueId>;
  void walk(const ir::Block& block, Live& live);
  void loop(const ir::Operation& operation, Live& live);
  void define(ir::ValueId value, const Live& live);
  bool tracked(ir::ValueId value) const;
  void add(ir::ValueId a, ir::ValueId b);

  const ir::Kernel& kernel_;
  ProductOperands operands_;
  std::set<std::pair<ir::ValueId, ir::ValueId>> graph_;
  bool finds_edges_ = true;
};

}  // namespace tilewright::analysis
