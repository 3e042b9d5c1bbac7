#include "schedules/turns.h"

#include <algorithm>
#include <vector>

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::ValueId;

Turns::Turns(const Placement& placement) : placement_(placement) {
  if (placement.groups > 1) visit(placement.kernel.body, false);
}

// Not inside conditions, nor loops that are cut for each warpgroup's rows: a turn that one
// warpgroup leaves out, the others wait for.
void Turns::visit(const ir::Block& block, bool in_loop) {
  for (const Operation& o : block.body) {
    if (o.op == Op::dot && in_loop && computed_from_loads(block, o)) products_.insert(&o);
    if (o.op == Op::for_loop && !of_own_rows(o.operands[0]) && !of_own_rows(o.operands[1])) {
      visit(o.blocks[0], true);
    }
  }
}

// Whether the scalar is, or may be, another one in each warpgroup.
bool Turns::of_own_rows(ValueId value) const {
  const Operation* o = placement_.definitions[value];
  if (!o) return false;
  if (o->op == Op::own_first || o->op == Op::own_end || !o->blocks.empty()) return true;
  return std::any_of(o->operands.begin(), o->operands.end(),
                     [this](ValueId operand) { return of_own_rows(operand); });
}

// What is made from another product waits for that one, not for loads.
bool Turns::computed_from_loads(const ir::Block& block, const Operation& product) const {
  if (placement_.source_of(product.operands[0]).load) return false;
  std::set<const Operation*> inside;
  for (const Operation& o : block.body) inside.insert(&o);
  bool loads = false;
  std::set<const Operation*> seen;
  std::vector<ValueId> open{product.operands[0]};
  while (!open.empty()) {
    const Operation* o = placement_.definitions[open.back()];
    open.pop_back();
    if (!o || inside.count(o) == 0 || !seen.insert(o).second) continue;
    if (o->op == Op::dot || !o->blocks.empty()) return false;
    loads |= o->op == Op::load && placement_.in_ring(*o);
    open.insert(open.end(), o->operands.begin(), o->operands.end());
  }
  return loads;
}

}  // namespace tilewright::schedules
