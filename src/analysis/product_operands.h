#pragma once

#include <set>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// Where the carried values of a loop begin.
struct Carried {
  std::size_t leading, extra, first;  // among its operands, what its block yields, its arguments
};
inline Carried carried(const ir::Operation& loop) {
  const bool is_for = loop.op == ir::Op::for_loop;
  return {is_for ? std::size_t{3} : std::size_t{1}, is_for ? std::size_t{0} : std::size_t{1},
          loop.blocks[0].arguments.size() - loop.results.size()};
}

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
