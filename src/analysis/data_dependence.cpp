#include "analysis/data_dependence.h"

#include "analysis/carried.h"

namespace tilewright::analysis {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Dependence {
 public:
  explicit Dependence(const ir::Kernel& kernel) : kernel_(kernel), depends_(kernel.types.size()) {
    for (const ir::Parameter& parameter : kernel.parameters) {
      depends_[parameter.value] = !parameter.is_tensor();
    }
  }

  std::vector<bool> run() {
    do {
      changed_ = false;
      ir::for_each(kernel_.body, [this](const Operation& operation) { visit(operation); });
    } while (changed_);
    return std::move(depends_);
  }

 private:
  void pass(bool depends, ValueId to) {
    if (!depends || depends_[to]) return;
    depends_[to] = true;
    changed_ = true;
  }

  bool any(const std::vector<ValueId>& values) const {
    for (const ValueId value : values) {
      if (depends_[value]) return true;
    }
    return false;
  }

  // Whether data decide how often a loop turns, or which branch is taken.
  bool decides(const Operation& operation) const {
    switch (ir::as<ir::ControlOp>(operation.op)) {
      case ir::ControlOp::for_loop:
        return depends_[operation.operands[0]] || depends_[operation.operands[1]] ||
               depends_[operation.operands[2]];
      case ir::ControlOp::while_loop:
        return depends_[operation.operands[0]] ||
               depends_[operation.blocks[0].body.back().operands[0]];
      case ir::ControlOp::if_then:
        return depends_[operation.operands[0]];
      case ir::ControlOp::yield:
      case ir::ControlOp::role:
      case ir::ControlOp::elect:
        break;
    }
    return false;
  }

  void visit(const Operation& operation) {
    const ir::Family family = ir::info(operation.op).family;
    if (family != ir::Family::control) {
      const bool sized = family == ir::Family::function || family == ir::Family::constant;
      for (const ValueId result : operation.results) {
        if (kernel_.type(result).is_scalar()) pass(!sized || any(operation.operands), result);
      }
      return;
    }
    const bool decided = decides(operation);
    if (operation.op == Op::for_loop) pass(decided, operation.blocks[0].arguments[0]);
    for (const ValueId result : operation.results) pass(decided, result);
    for_each_carried(operation,
                     [&](ValueId from, ValueId to) { pass(decided || depends_[from], to); });
  }

  const ir::Kernel& kernel_;
  std::vector<bool> depends_;
  bool changed_ = false;
};

}  // namespace

std::vector<bool> data_dependent(const ir::Kernel& kernel) { return Dependence(kernel).run(); }

}  // namespace tilewright::analysis
