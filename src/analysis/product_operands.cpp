#include "analysis/product_operands.h"

#include "analysis/carried.h"

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
    }
    for_each_carried(o, [this](ValueId from, ValueId to) { flow(from, to); });
  }
}

}  // namespace tilewright::analysis
