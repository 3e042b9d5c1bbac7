#include "passes/hoist.h"

#include <algorithm>

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;

class Hoister {
 public:
  explicit Hoister(ir::Kernel& kernel) : kernel_(kernel) {
    depth_.resize(kernel.types.size(), 0);
    positive_.resize(kernel.types.size(), false);
    ir::for_each(kernel.body, [this](const Operation& o) {
      if (o.op == Op::dim) positive_[o.results[0]] = o.attributes.dim().range().minimum > 0;
      if (o.op != Op::constant) return;
      const auto* value = std::get_if<std::int64_t>(o.attributes.find(ir::Key::value));
      positive_[o.results[0]] = value && *value > 0;
    });
  }

  // `depth` counts the loops around; what moves out of this block's loops lands in it.
  void visit(ir::Block& block, int depth) {
    for (const ir::ValueId argument : block.arguments) depth_[argument] = depth;
    std::vector<Operation> body;
    body.reserve(block.body.size());
    for (Operation& operation : block.body) {
      const bool loop = operation.op == Op::for_loop || operation.op == Op::while_loop;
      for (ir::Block& inner : operation.blocks) visit(inner, depth + loop);
      if (loop) {
        ir::Block& inner = operation.blocks[0];
        std::vector<Operation> stays;
        stays.reserve(inner.body.size());
        for (Operation& candidate : inner.body) {
          if (movable(candidate) && invariant(candidate, depth)) {
            for (const ir::ValueId result : candidate.results) depth_[result] = depth;
            body.push_back(std::move(candidate));
          } else {
            stays.push_back(std::move(candidate));
          }
        }
        inner.body = std::move(stays);
      }
      for (const ir::ValueId result : operation.results) depth_[result] = depth;
      body.push_back(std::move(operation));
    }
    block.body = std::move(body);
  }

 private:
  bool invariant(const Operation& operation, int depth) const {
    return std::all_of(operation.operands.begin(), operation.operands.end(),
                       [&](ir::ValueId operand) { return depth_[operand] <= depth; });
  }

  bool movable(const Operation& operation) const {
    if (operation.results.size() != 1 || !operation.blocks.empty()) return false;
    if (operation.op == Op::load) {
      // In registers it would take its place for the whole loop.
      return kernel_.form == ir::Form::tile &&
             kernel_.parameter_of(operation.operands[0])->kind == ir::Parameter::Kind::in;
    }
    // A division may have no result where the loop does not run.
    if (operation.op == Op::div || operation.op == Op::mod || operation.op == Op::ceildiv) {
      const ir::Type& type = kernel_.type(operation.results[0]);
      if (is_integer(type.dtype) && !positive_[operation.operands[1]]) return false;
    }
    return ir::info(operation.op).pure() &&
           (kernel_.form == ir::Form::tile || kernel_.type(operation.results[0]).is_scalar());
  }

  ir::Kernel& kernel_;
  std::vector<int> depth_;      // loops around the definition of a value
  std::vector<bool> positive_;  // known integers above zero
};

}  // namespace

void hoist(ir::Kernel& kernel) { Hoister(kernel).visit(kernel.body, 0); }

}  // namespace tilewright::passes
