#include "passes/eliminate_dead.h"

#include <algorithm>

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

// Whether nothing is lost with the operation once nobody reads its results.
bool removable(const Operation& operation) {
  // A load in an order may acquire what nobody reads of it.
  const bool loads = operation.op == Op::load && !operation.attributes.has(ir::Key::semantics);
  return ir::info(operation.op).pure() || loads;
}

class DeadCode {
 public:
  explicit DeadCode(ir::Kernel& kernel) : live_(kernel.types.size(), false) {}

  // Marks until nothing changes: a carried value is live when its result or its argument is.
  void run(ir::Block& block) {
    do {
      changed_ = false;
      mark(block, true);
    } while (changed_);
    sweep(block);
  }

 private:
  void use(ValueId value) {
    if (!live_[value]) live_[value] = changed_ = true;
  }

  static bool carries(const Operation& operation) {
    return operation.op == Op::for_loop || operation.op == Op::while_loop ||
           operation.op == Op::if_then;
  }
  static std::size_t leading(const Operation& operation) {
    return operation.op == Op::for_loop ? 3 : 1;
  }

  // `keep_yield`: the block's yield has no carried values of its own (elect, role).
  void mark(const ir::Block& block, bool keep_yield) {
    for (auto at = block.body.rbegin(); at != block.body.rend(); ++at) {
      const Operation& operation = *at;
      if (carries(operation)) {
        mark_carried(operation);
        continue;
      }
      if (operation.op == Op::yield && !keep_yield) continue;
      const bool needed =
          !removable(operation) || std::any_of(operation.results.begin(), operation.results.end(),
                                               [this](ValueId result) { return live_[result]; });
      if (!needed) continue;
      for (const ValueId operand : operation.operands) use(operand);
      for (const ir::Block& inner : operation.blocks) mark(inner, true);
    }
  }

  void mark_carried(const Operation& operation) {
    for (std::size_t i = 0; i < leading(operation); ++i) use(operation.operands[i]);
    const bool is_if = operation.op == Op::if_then;
    const std::size_t extra = operation.op == Op::while_loop ? 1 : 0;  // the yielded condition
    for (const ir::Block& block : operation.blocks) {
      const Operation& yield = block.body.back();
      const std::size_t first = block.arguments.size() - (is_if ? 0 : operation.results.size());
      if (extra) use(yield.operands[0]);
      for (std::size_t i = 0; i < operation.results.size(); ++i) {
        const bool argument = !is_if && live_[block.arguments[first + i]];
        if (!live_[operation.results[i]] && !argument) continue;
        use(operation.results[i]);
        use(yield.operands[extra + i]);
        if (!is_if) {
          use(block.arguments[first + i]);
          use(operation.operands[leading(operation) + i]);
        }
      }
      mark(block, false);
    }
  }

  void sweep(ir::Block& block) {
    std::vector<Operation> kept;
    kept.reserve(block.body.size());
    for (Operation& operation : block.body) {
      const bool used = std::any_of(operation.results.begin(), operation.results.end(),
                                    [this](ValueId result) { return live_[result]; });
      if (removable(operation) && !used) continue;
      if (carries(operation)) sweep_carried(operation);
      for (ir::Block& inner : operation.blocks) sweep(inner);
      kept.push_back(std::move(operation));
    }
    block.body = std::move(kept);
  }

  void sweep_carried(Operation& operation) {
    const bool is_if = operation.op == Op::if_then;
    const std::size_t extra = operation.op == Op::while_loop ? 1 : 0;
    for (std::size_t i = operation.results.size(); i-- > 0;) {
      if (live_[operation.results[i]]) continue;
      for (ir::Block& block : operation.blocks) {
        std::vector<ValueId>& yielded = block.body.back().operands;
        yielded.erase(yielded.begin() + extra + i);
        if (is_if) continue;
        const std::size_t first = block.arguments.size() - operation.results.size();
        block.arguments.erase(block.arguments.begin() + first + i);
      }
      if (!is_if) operation.operands.erase(operation.operands.begin() + leading(operation) + i);
      operation.results.erase(operation.results.begin() + i);
    }
  }

  std::vector<bool> live_;
  bool changed_ = false;
};

}  // namespace

void eliminate_dead(ir::Kernel& kernel) { DeadCode(kernel).run(kernel.body); }

}  // namespace tilewright::passes
