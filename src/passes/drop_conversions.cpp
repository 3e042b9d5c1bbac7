#include "passes/drop_conversions.h"

#include <map>
#include <utility>
#include <vector>

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Operation;
using ir::ValueId;

void drop(const ir::Kernel& kernel, ir::Block& block, bool chosen_too,
          std::map<ValueId, ValueId>& instead) {
  std::vector<Operation> kept;
  for (Operation& o : block.body) {
    for (ValueId& operand : o.operands) {
      if (const auto at = instead.find(operand); at != instead.end()) operand = at->second;
    }
    if (moves_nothing(kernel, o) && (chosen_too || !o.attributes.has(Key::layout))) {
      instead[o.results[0]] = o.operands[0];
      continue;
    }
    for (ir::Block& inner : o.blocks) drop(kernel, inner, chosen_too, instead);
    kept.push_back(std::move(o));
  }
  block.body = std::move(kept);
}

}  // namespace

bool moves_nothing(const ir::Kernel& kernel, const Operation& o) {
  return o.op == ir::Op::convert && !o.attributes.has(Key::offsets) &&
         kernel.type(o.operands[0]).layout == kernel.type(o.results[0]).layout;
}

bool stays_in_lanes(const ir::Kernel& kernel, const Operation& o) {
  if (o.op != ir::Op::convert || o.attributes.has(Key::offsets)) return false;
  const ir::Type &from = kernel.type(o.operands[0]), &to = kernel.type(o.results[0]);
  const int bytes = size_of(from.dtype);
  return (bytes == 4 || bytes == 2) && from.shape == to.shape &&
         ir::register_map(to.layout, from.layout).ok();
}

void drop_conversions(ir::Kernel& kernel, bool chosen_too) {
  std::map<ValueId, ValueId> instead;
  drop(kernel, kernel.body, chosen_too, instead);
}

}  // namespace tilewright::passes
