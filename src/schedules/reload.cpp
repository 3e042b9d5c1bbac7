#include "schedules/reload.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/definitions.h"

namespace tilewright::schedules {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

bool is_part(const Operation& o) { return o.op == Op::transpose || o.op == Op::slice; }

class Reloading {
 public:
  explicit Reloading(ir::Kernel& kernel)
      : kernel_(kernel), definitions_(analysis::definitions(kernel)) {
    std::int64_t rows = 0;
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (o.op == Op::dot) rows = std::max(rows, kernel.type(o.results[0]).shape[0]);
    });
    std::set<const Operation*> products, others;
    ir::for_each(kernel.body, [&](const Operation& o) {
      for (std::size_t i = 0; i < o.operands.size(); ++i) {
        const Operation* load = loaded(o.operands[i]);
        if (!load || is_part(o)) continue;
        if (reads_in_memory(o, i)) {
          products.insert(load);
        } else if (load->results[0] != o.operands[i] ||
                   kernel.type(load->results[0]).shape[0] != rows) {
          others.insert(load);
        }
      }
    });
    for (const Operation* load : others) {
      if (products.count(load) != 0) again_.insert(load->results[0]);
    }
  }

  void visit(ir::Block& block) {
    std::vector<Operation> old = std::exchange(block.body, {});
    for (Operation& o : old) {
      const bool twice = !o.results.empty() && (again_.count(o.results[0]) != 0 ||
                                                (is_part(o) && instead_.count(o.operands[0]) != 0));
      if (twice) {
        Operation copy = o;
        copy.results[0] = kernel_.add_value(kernel_.type(o.results[0]));
        if (is_part(o)) copy.operands[0] = instead_.at(o.operands[0]);
        instead_[o.results[0]] = copy.results[0];
        block.body.push_back(std::move(o));
        block.body.push_back(std::move(copy));
        continue;
      }
      for (std::size_t i = 0; i < o.operands.size(); ++i) {
        const auto at = instead_.find(o.operands[i]);
        if (at != instead_.end() && !reads_in_memory(o, i)) o.operands[i] = at->second;
      }
      for (ir::Block& inner : o.blocks) visit(inner);
      block.body.push_back(std::move(o));
    }
  }

 private:
  static bool reads_in_memory(const Operation& o, std::size_t operand) {
    return (o.op == Op::dot && operand < 2) || o.op == Op::discard;
  }
  const Operation* loaded(ValueId value) const {
    const Operation* o = definitions_[value];
    while (o && is_part(*o)) o = definitions_[o->operands[0]];
    return o && o->op == Op::load && kernel_.type(o->results[0]).shape.size() == 2 ? o : nullptr;
  }

  ir::Kernel& kernel_;
  const std::vector<const Operation*> definitions_;
  std::set<ValueId> again_;             // loads
  std::map<ValueId, ValueId> instead_;  // of a tile in shared memory, the same in registers
};

}  // namespace

ir::Kernel reload(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  Reloading(result).visit(result.body);
  return result;
}

}  // namespace tilewright::schedules
