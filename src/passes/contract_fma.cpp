#include "passes/contract_fma.h"

#include <unordered_map>

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Contraction {
 public:
  explicit Contraction(ir::Kernel& kernel) : kernel_(kernel), uses_(kernel.types.size(), 0) {
    ir::for_each(kernel.body, [this](const Operation& operation) {
      for (const ValueId operand : operation.operands) ++uses_[operand];
      if (operation.op == Op::mul) products_[operation.results[0]] = operation.operands;
    });
  }

  int count() const { return count_; }

  void visit(ir::Block& block) {
    std::vector<Operation> body;
    body.reserve(block.body.size());
    for (Operation& operation : block.body) {
      for (ir::Block& inner : operation.blocks) visit(inner);
      contract(operation, body);
      body.push_back(std::move(operation));
    }
    block.body = std::move(body);
  }

 private:
  void contract(Operation& operation, std::vector<Operation>& before) {
    if (operation.op != Op::add && operation.op != Op::sub) return;
    const ir::Type type = kernel_.type(operation.results[0]);
    if (!type.is_tile() || type.dtype != f32) return;
    const bool minus = operation.op == Op::sub;
    for (const std::size_t side : {0u, 1u}) {
      if (minus && side == 1) return;  // c - a * b would need a negated factor
      const auto product = products_.find(operation.operands[side]);
      if (product == products_.end() || uses_[product->first] != 1) continue;
      ValueId addend = operation.operands[1 - side];
      if (minus) {
        Operation negate;
        negate.op = Op::neg;
        negate.operands = {addend};
        const ir::Type addend_type = kernel_.type(addend);
        negate.results = {kernel_.add_value(addend_type)};
        negate.where = operation.where;
        addend = negate.results[0];
        before.push_back(std::move(negate));
      }
      operation.op = Op::fma;
      ++count_;
      operation.operands = {product->second[0], product->second[1], addend};
      return;
    }
  }

  ir::Kernel& kernel_;
  std::vector<int> uses_;
  std::unordered_map<ValueId, std::vector<ValueId>> products_;
  int count_ = 0;
};

}  // namespace

// The product that was contracted is left for eliminate_dead.
int contract_fma(ir::Kernel& kernel) {
  Contraction contraction(kernel);
  contraction.visit(kernel.body);
  return contraction.count();
}

}  // namespace tilewright::passes
