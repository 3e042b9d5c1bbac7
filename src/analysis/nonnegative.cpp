#include "analysis/nonnegative.h"

#include <algorithm>

#include "analysis/carried.h"

namespace tilewright::analysis {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

// Starts by believing every integer and takes back what does not follow, until nothing changes:
// what remains holds also for values that go around loops.
class Search {
 public:
  Search(const ir::Kernel& kernel, const std::function<bool(ValueId)>& given)
      : kernel_(kernel), given_(given), known_(kernel.types.size()) {
    for (ValueId i = 0; i < known_.size(); ++i) {
      known_[i] = kernel.type(i).is_scalar() && is_integer(kernel.type(i).dtype);
    }
    for (const ir::Parameter& parameter : kernel.parameters) require(parameter.value, false);
  }

  std::vector<bool> run() {
    do {
      changed_ = false;
      ir::for_each(kernel_.body, [this](const Operation& operation) { visit(operation); });
    } while (changed_);
    return std::move(known_);
  }

 private:
  void require(ValueId value, bool holds) {
    if (!known_[value] || holds || (given_ && given_(value))) return;
    known_[value] = false;
    changed_ = true;
  }

  bool all(const std::vector<ValueId>& values) const {
    return std::all_of(values.begin(), values.end(), [this](ValueId v) { return known_[v]; });
  }

  bool function_holds(const Operation& operation) const {
    const std::vector<ValueId>& operands = operation.operands;
    switch (ir::info(operation.op).kind) {
      case ir::FunctionKind::arithmetic:
        switch (ir::as<ir::ArithmeticFunction>(operation.op)) {
          case ir::ArithmeticFunction::add:
          case ir::ArithmeticFunction::mul:
          case ir::ArithmeticFunction::div:
          case ir::ArithmeticFunction::min:
          case ir::ArithmeticFunction::fma:
            return all(operands);
          case ir::ArithmeticFunction::max:
            return known_[operands[0]] || known_[operands[1]];
          case ir::ArithmeticFunction::sub:
          case ir::ArithmeticFunction::neg:
          case ir::ArithmeticFunction::abs:  // of the lowest number it is that number
            break;
        }
        return false;
      case ir::FunctionKind::division:
        return operation.op == Op::mod ? known_[operands[1]] : all(operands);
      case ir::FunctionKind::bits:
        switch (ir::as<ir::BitFunction>(operation.op)) {
          case ir::BitFunction::bit_or:
          case ir::BitFunction::bit_xor:
            return all(operands);
          case ir::BitFunction::bit_and:
            return known_[operands[0]] || known_[operands[1]];
          case ir::BitFunction::shift_right:
            return known_[operands[0]];
          case ir::BitFunction::bit_not:
          case ir::BitFunction::shift_left:
            break;
        }
        return false;
      case ir::FunctionKind::choice:  // what it may pass on
        return known_[operands.back()] && (operation.op == Op::cast || known_[operands[1]]);
      case ir::FunctionKind::real:
      case ir::FunctionKind::comparison:
      case ir::FunctionKind::logic:
        break;
    }
    return false;
  }

  // Of what is known to be so; nothing is of all else.
  bool result_holds(const Operation& operation) const {
    if (operation.op == Op::constant) {
      const auto* value = std::get_if<std::int64_t>(operation.attributes.find(ir::Key::value));
      return value && *value >= 0;
    }
    if (operation.op == Op::dim) return operation.attributes.dim().range().minimum >= 0;
    const ir::Family family = ir::info(operation.op).family;
    if (family == ir::Family::position) return operation.op != Op::epoch;
    return family == ir::Family::function && function_holds(operation);
  }

  void visit(const Operation& operation) {
    if (ir::info(operation.op).family != ir::Family::control) {
      if (!operation.results.empty()) require(operation.results[0], result_holds(operation));
      return;
    }
    if (operation.op == Op::for_loop) {
      require(operation.blocks[0].arguments[0], known_[operation.operands[0]]);
    }
    for_each_carried(operation, [this](ValueId from, ValueId to) { require(to, known_[from]); });
  }

  const ir::Kernel& kernel_;
  const std::function<bool(ValueId)>& given_;
  std::vector<bool> known_;
  bool changed_ = false;
};

}  // namespace

std::vector<bool> nonnegative_values(const ir::Kernel& kernel,
                                     const std::function<bool(ValueId)>& given) {
  return Search(kernel, given).run();
}

}  // namespace tilewright::analysis
