#include "passes/fold_accumulators.h"

#include <unordered_map>

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Folding {
 public:
  explicit Folding(const ir::Kernel& kernel) : kernel_(kernel), uses_(kernel.types.size(), 0) {
    ir::for_each(kernel.body, [this](const Operation& operation) {
      for (const ValueId operand : operation.operands) ++uses_[operand];
    });
  }

  int count() const { return count_; }

  // The product moves to the addition, within its block: neither reads memory.
  void visit(ir::Block& block) {
    std::unordered_map<ValueId, std::vector<ValueId>> products;
    for (Operation& operation : block.body) {
      for (ir::Block& inner : operation.blocks) visit(inner);
      if (operation.op == Op::dot && operation.operands.size() == 2) {
        products[operation.results[0]] = operation.operands;
      }
      if (operation.op != Op::add) continue;
      for (const std::size_t side : {0u, 1u}) {
        const auto product = products.find(operation.operands[side]);
        const ValueId addend = operation.operands[1 - side];
        if (product == products.end() || uses_[product->first] != 1) continue;
        if (kernel_.type(addend) != kernel_.type(operation.results[0])) continue;
        operation.op = Op::dot;
        ++count_;
        operation.operands = {product->second[0], product->second[1], addend};
        break;
      }
    }
  }

 private:
  const ir::Kernel& kernel_;
  std::vector<int> uses_;
  int count_ = 0;
};

}  // namespace

// The product without accumulator is left for eliminate_dead.
int fold_accumulators(ir::Kernel& kernel) {
  Folding folding(kernel);
  folding.visit(kernel.body);
  return folding.count();
}

}  // namespace tilewright::passes
