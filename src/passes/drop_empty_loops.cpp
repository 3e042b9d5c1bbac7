#include "passes/drop_empty_loops.h"

#include <set>
#include <utility>
#include <vector>

#include "analysis/not_less.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Dropping {
 public:
  explicit Dropping(ir::Kernel& kernel) : replaced_(kernel.types.size(), ir::kNoValue) {
    analysis::NotLess not_less(kernel);
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (o.op == Op::for_loop && not_less.proves(o.operands[0], o.operands[1])) {
        empty_.insert(o.blocks[0].arguments[0]);
      }
    });
    if (!empty_.empty()) visit(kernel.body);
  }

 private:
  bool is_empty(const Operation& o) const {
    return o.op == Op::for_loop && empty_.count(o.blocks[0].arguments[0]) != 0;
  }

  void visit(ir::Block& block) {
    std::vector<Operation> kept;
    kept.reserve(block.body.size());
    for (Operation& operation : block.body) {
      for (ValueId& operand : operation.operands) {
        if (replaced_[operand] != ir::kNoValue) operand = replaced_[operand];
      }
      if (is_empty(operation)) {
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
          replaced_[operation.results[i]] = operation.operands[3 + i];
        }
        continue;
      }
      for (ir::Block& inner : operation.blocks) visit(inner);
      kept.push_back(std::move(operation));
    }
    block.body = std::move(kept);
  }

  std::set<ValueId> empty_;  // their indices
  std::vector<ValueId> replaced_;
};

}  // namespace

void drop_empty_loops(ir::Kernel& kernel) { Dropping dropping(kernel); }

}  // namespace tilewright::passes
