#include "analysis/product_operands.h"

namespace tilewright::analysis {

using ir::Op;
using ir::Operation;
using ir::ValueId;

ProductOperands::ProductOperands(const ir::Kernel& kernel, const ir::Block& role) {
  operands_of_.resize(kernel.types.size());
  // Until nothing changes: a value may cross the back edges of several loops.
  std::size_t before = 0, now = 0;
  do {
    before = now;
    collect(kernel, role);
    now = 0;
    for (const std::set<ValueId>& operands : operands_of_) now += operands.size();
  } while (now != before);
}

void ProductOperands::flow(ValueId from, ValueId to) {
  if (from == to) return;
  operands_of_[to].insert(operands_of_[from].begin(), operands_of_[from].end());
}

void ProductOperands::collect(const ir::Kernel& kernel, const ir::Block& block) {
  for (const Operation& o : block.body) {
    for (const ir::Block& inner : o.blocks) collect(kernel, inner);
    if (ir::info(o.op).is_asynchronous_product()) {
      for (std::size_t i = 0; i < o.operands.size(); ++i) {
        if (ir::is_read_in_flight(kernel, o, i)) operands_of_[o.results[0]].insert(o.operands[i]);
      }
      const ValueId accumulator = ir::accumulator_of(o);
      if (accumulator != ir::kNoValue) flow(accumulator, o.results[0]);
    } else if (o.op == Op::for_loop || o.op == Op::while_loop) {
      const Carried c = carried(o);
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        const ValueId argument = o.blocks[0].arguments[c.first + i];
        flow(o.operands[c.leading + i], argument);
        flow(o.blocks[0].body.back().operands[c.extra + i], argument);
        flow(argument, o.results[i]);
      }
    } else if (o.op == Op::if_then) {
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        for (const ir::Block& branch : o.blocks) flow(branch.body.back().operands[i], o.results[i]);
      }
    }
  }
}

}  // namespace tilewright::analysis
