#include "passes/skip_identities.h"

#include "analysis/definitions.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

class IdentitySkipping {
 public:
  explicit IdentitySkipping(ir::Kernel& kernel)
      : kernel_(kernel), before_(kernel), definitions_(analysis::definitions(before_)) {}

  void visit(ir::Block& block) {
    for (Operation& operation : block.body) {
      for (ir::Block& inner : operation.blocks) visit(inner);
      if (operation.op == Op::mul) rewrite(operation);
    }
  }

 private:
  bool is_one(ValueId value) const {
    const Operation* o = definitions_[value];
    if (o && o->op == Op::splat) o = definitions_[o->operands[0]];
    if (!o || o->op != Op::constant) return false;
    const auto* number = std::get_if<double>(o->attributes.find(Key::value));
    return number && *number == 1;
  }

  // The condition that decides whether `factor` is 1, and in which branch it is.
  bool decided(ValueId factor, ValueId& condition, std::size_t& branch) const {
    const Operation* o = definitions_[factor];
    if (!o || o->op != Op::if_then) return false;
    for (std::size_t i = 0; i < o->results.size(); ++i) {
      if (o->results[i] != factor) continue;
      for (branch = 0; branch < 2; ++branch) {
        if (!is_one(o->blocks[branch].body.back().operands[i])) continue;
        condition = o->operands[0];
        return true;
      }
    }
    return false;
  }

  void rewrite(Operation& product) {
    for (const std::size_t side : {0u, 1u}) {
      const ValueId factor = product.operands[side], other = product.operands[1 - side];
      const ir::Type type = kernel_.type(product.results[0]);
      if (!kernel_.type(factor).is_tile() || kernel_.type(other) != type ||
          kernel_.type(factor).elements() >= type.elements()) {
        continue;
      }
      ValueId condition = ir::kNoValue;
      std::size_t branch = 0;
      if (!decided(factor, condition, branch)) continue;
      Operation inner = product;
      inner.results = {kernel_.add_value(type)};
      const SourceLocation where = product.where;
      const auto yield = [&](ValueId value) {
        return Operation{Op::yield, {value}, {}, {}, {}, where};
      };
      ir::Block multiplied{{}, {inner, yield(inner.results[0])}}, unchanged{{}, {yield(other)}};
      product = Operation{Op::if_then, {condition}, product.results, {}, {}, where};
      product.blocks = {std::move(multiplied), std::move(unchanged)};
      if (branch == 0) std::swap(product.blocks[0], product.blocks[1]);
      return;
    }
  }

  ir::Kernel& kernel_;
  const ir::Kernel before_;
  const std::vector<const Operation*> definitions_;
};

}  // namespace

void skip_identities(ir::Kernel& kernel) { IdentitySkipping(kernel).visit(kernel.body); }

}  // namespace tilewright::passes
