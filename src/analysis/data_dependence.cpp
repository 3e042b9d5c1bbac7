#include "analysis/data_dependence.h"

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

  // What the operands from `first` on and the block's yield hand on, or all where `condition`
  // depends on data.
  void carried(const Operation& operation, std::size_t first, bool condition) {
    const ir::Block& block = operation.blocks[0];
    const std::vector<ValueId>& yielded = block.body.back().operands;
    const std::size_t count = operation.results.size();
    for (std::size_t i = 0; i < count; ++i) {
      const bool depends = condition || depends_[operation.operands[first + i]] ||
                           depends_[yielded[yielded.size() - count + i]];
      pass(depends, block.arguments[block.arguments.size() - count + i]);
      pass(depends, operation.results[i]);
    }
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
    switch (ir::as<ir::ControlOp>(operation.op)) {
      case ir::ControlOp::for_loop: {
        bool bounds = false;
        for (std::size_t i = 0; i < 3; ++i) bounds = bounds || depends_[operation.operands[i]];
        pass(bounds, operation.blocks[0].arguments[0]);
        return carried(operation, 3, bounds);
      }
      case ir::ControlOp::while_loop:
        return carried(operation, 1,
                       depends_[operation.operands[0]] ||
                           depends_[operation.blocks[0].body.back().operands[0]]);
      case ir::ControlOp::if_then:
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
          for (const ir::Block& block : operation.blocks) {
            pass(depends_[operation.operands[0]] || depends_[block.body.back().operands[i]],
                 operation.results[i]);
          }
        }
        return;
      case ir::ControlOp::yield:
      case ir::ControlOp::role:
      case ir::ControlOp::elect:
        return;
    }
  }

  const ir::Kernel& kernel_;
  std::vector<bool> depends_;
  bool changed_ = false;
};

}  // namespace

std::vector<bool> data_dependent(const ir::Kernel& kernel) { return Dependence(kernel).run(); }

}  // namespace tilewright::analysis
