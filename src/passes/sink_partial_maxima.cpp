#include "passes/sink_partial_maxima.h"

#include <map>
#include <set>

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

class PartialMaxima {
 public:
  explicit PartialMaxima(ir::Kernel& kernel) : kernel_(kernel) {
    std::set<ValueId> only_any, used;
    ir::for_each(kernel.body, [&](const Operation& o) {
      for (const ValueId operand : o.operands) {
        if (o.op == Op::any && used.count(operand) == 0) only_any.insert(operand);
        if (o.op != Op::any) only_any.erase(operand);
        if (o.op != Op::any) used.insert(operand);
      }
      if (o.op == Op::reduce && !o.attributes.has(Key::count))
        functions_[o.results[0]] = o.attributes.function();
    });
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (only_any.count(o.results.empty() ? ir::kNoValue : o.results[0]) == 0) return;
      const int bounded = question(o);
      if (bounded < 0) return;
      const ValueId value = o.operands[bounded];
      if (kernel.type(value).shape != kernel.type(o.results[0]).shape) return;
      partial_.insert(value);
      questions_.insert(o.results[0]);
    });
  }

  int apply() {
    if (!partial_.empty()) rewrite(kernel_.body);
    return static_cast<int>(partial_.size());
  }

 private:
  // Which operand is a maximum that is asked to exceed the other (a minimum, to fall below); -1 for
  // none.
  int question(const Operation& o) const {
    if (o.op != Op::lt && o.op != Op::le) return -1;
    for (const int side : {0, 1}) {
      const auto at = functions_.find(o.operands[side]);
      if (at != functions_.end() && at->second == (side == 1 ? Op::max : Op::min)) return side;
    }
    return -1;
  }

  void rewrite(ir::Block& block) {
    std::vector<Operation> body;
    body.reserve(block.body.size());
    for (Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) rewrite(inner);
      if (!o.results.empty() && questions_.count(o.results[0]) != 0) {
        o.attributes.set(Key::partial, std::int64_t{question(o)});
      } else {
        for (ValueId& operand : o.operands) {
          if (partial_.count(operand) != 0) operand = complete(operand, o, body);
        }
      }
      if (o.op == Op::reduce && partial_.count(o.results[0]) != 0) {
        o.attributes.set(Key::partial, std::int64_t{1});
      }
      body.push_back(std::move(o));
    }
    block.body = std::move(body);
  }

  ValueId complete(ValueId value, const Operation& use, std::vector<Operation>& before) {
    Operation whole;
    whole.op = Op::complete;
    whole.operands = {value};
    const ir::Type type = kernel_.type(value);
    whole.results = {kernel_.add_value(type)};
    whole.attributes = {{Key::function, functions_.at(value)}};
    whole.where = use.where;
    before.push_back(std::move(whole));
    return before.back().results[0];
  }

  ir::Kernel& kernel_;
  std::map<ValueId, Op> functions_;  // of reductions
  std::set<ValueId> partial_, questions_;
};

}  // namespace

int sink_partial_maxima(ir::Kernel& kernel) { return PartialMaxima(kernel).apply(); }

}  // namespace tilewright::passes
