#include "schedules/memory_order.h"

#include <algorithm>

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::ValueId;

MemoryOrder::MemoryOrder(const ir::Kernel& kernel) : kernel_(kernel) {
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::store) stores_[tensor_of(o)].push_back(&o);
  });
  std::set<ValueId> stored;
  visit(kernel.body, stored);
}

void MemoryOrder::visit(const ir::Block& block, std::set<ValueId>& stored) {
  for (const Operation& o : block.body) {
    if (o.op == Op::load || o.op == Op::load_index) {
      any_meet_ |= stores_.count(tensor_of(o)) != 0;
      if (stored.count(tensor_of(o)) != 0) {
        after_store_.insert(&o);
        read_back_.insert(tensor_of(o));
      }
    }
    if (o.op == Op::store) stored.insert(tensor_of(o));
    for (const ir::Block& inner : o.blocks) {
      // What an iteration stores, the next one finds.
      if (o.op == Op::for_loop || o.op == Op::while_loop) {
        ir::for_each(inner, [&](const Operation& nested) {
          if (nested.op == Op::store) stored.insert(tensor_of(nested));
        });
      }
      visit(inner, stored);
    }
  }
}

bool MemoryOrder::stored_elsewhere(const Operation& load) const {
  const auto at = stores_.find(tensor_of(load));
  if (at == stores_.end()) return false;
  return std::any_of(at->second.begin(), at->second.end(), [&](const Operation* store) {
    return store->operands[0] != load.operands[0] ||
           store->attributes.integers(ir::Key::sizes) != load.attributes.integers(ir::Key::sizes) ||
           !std::equal(load.operands.begin() + 1, load.operands.end(), store->operands.begin() + 2,
                       store->operands.end());
  });
}

}  // namespace tilewright::schedules
