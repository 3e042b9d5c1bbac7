#pragma once

#include <cstddef>

#include "ir/ir.h"

// What values control hands on: into loops, around them, and out of loops and branches.
namespace tilewright::analysis {

// Where a loop's carried values begin.
struct Carried {
  std::size_t leading, extra, first;  // among its operands, what its block yields, its arguments
};
inline Carried carried(const ir::Operation& loop) {
  const bool is_for = loop.op == ir::Op::for_loop;
  return {is_for ? std::size_t{3} : std::size_t{1}, is_for ? std::size_t{0} : std::size_t{1},
          loop.blocks[0].arguments.size() - loop.results.size()};
}

// Calls flow(from, to) for each value that becomes an argument or a result of the operation. A
// loop's result comes from its argument, whether the loop turns or not. The index of a loop has no
// part in this.
template <class Flow>
void for_each_carried(const ir::Operation& operation, Flow&& flow) {
  const std::size_t count = operation.results.size();
  if (operation.op == ir::Op::for_loop || operation.op == ir::Op::while_loop) {
    const Carried c = carried(operation);
    const ir::Block& block = operation.blocks[0];
    for (std::size_t i = 0; i < count; ++i) {
      const ir::ValueId argument = block.arguments[c.first + i];
      flow(operation.operands[c.leading + i], argument);
      flow(block.body.back().operands[c.extra + i], argument);
      flow(argument, operation.results[i]);
    }
  } else if (operation.op == ir::Op::if_then) {
    for (std::size_t i = 0; i < count; ++i) {
      for (const ir::Block& branch : operation.blocks) {
        flow(branch.body.back().operands[i], operation.results[i]);
      }
    }
  }
}

}  // namespace tilewright::analysis
