#include "passes/eliminate_common.h"

#include <unordered_map>

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;

class Eliminator {
 public:
  explicit Eliminator(ir::Kernel& kernel) : kernel_(kernel) {
    replaced_.resize(kernel.types.size(), ir::kNoValue);
  }

  void visit(ir::Block& block) {
    const std::size_t scope = trail_.size();
    std::vector<Operation> kept;
    kept.reserve(block.body.size());
    for (Operation& operation : block.body) {
      for (ir::ValueId& operand : operation.operands) {
        if (replaced_[operand] != ir::kNoValue) operand = replaced_[operand];
      }
      for (ir::Block& inner : operation.blocks) visit(inner);
      if (candidate(operation)) {
        const std::uint64_t key = hash(operation);
        if (const Entry* same = find(key, operation)) {
          replaced_[operation.results[0]] = same->operation.results[0];
          continue;
        }
        seen_[key].push_back({operation});
        trail_.push_back(key);
      }
      kept.push_back(std::move(operation));
    }
    while (trail_.size() > scope) {
      seen_[trail_.back()].pop_back();
      trail_.pop_back();
    }
    block.body = std::move(kept);
  }

 private:
  struct Entry {
    Operation operation;
  };

  // In registers a splat begins a variable of its own, coordinates are cheaper made than kept, and
  // of what is loaded twice each lies as its readers want it.
  bool candidate(const Operation& operation) const {
    const bool constant_load =
        (operation.op == Op::load || operation.op == Op::load_index) &&
        !operation.attributes.has(ir::Key::semantics) &&
        kernel_.parameter_of(operation.operands[0])->kind == ir::Parameter::Kind::in;
    return operation.results.size() == 1 && operation.blocks.empty() &&
           (ir::info(operation.op).pure() || constant_load) &&
           !(kernel_.form != ir::Form::tile &&
             (operation.op == Op::splat || operation.op == Op::iota || operation.op == Op::load));
  }

  static std::uint64_t hash(const Operation& operation) {
    std::uint64_t h = static_cast<std::uint64_t>(operation.op) + 1;
    for (const ir::ValueId operand : operation.operands) h = h * 0x9E3779B97F4A7C15u + operand;
    return h;
  }

  const Entry* find(std::uint64_t key, const Operation& operation) const {
    const auto at = seen_.find(key);
    if (at == seen_.end()) return nullptr;
    for (const Entry& entry : at->second) {
      const Operation& other = entry.operation;
      if (other.op == operation.op && other.operands == operation.operands &&
          other.attributes == operation.attributes &&
          kernel_.type(other.results[0]) == kernel_.type(operation.results[0])) {
        return &entry;
      }
    }
    return nullptr;
  }

  ir::Kernel& kernel_;
  std::unordered_map<std::uint64_t, std::vector<Entry>> seen_;
  std::vector<std::uint64_t> trail_;
  std::vector<ir::ValueId> replaced_;
};

}  // namespace

void eliminate_common(ir::Kernel& kernel) { Eliminator(kernel).visit(kernel.body); }

}  // namespace tilewright::passes
