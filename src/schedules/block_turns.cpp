#include "schedules/block_turns.h"

#include "tilewright/ranks.h"

namespace tilewright::schedules {
namespace {

using ir::Op;
using ir::Operation;

bool adds_in_order(const Operation& o) {
  return o.op == Op::red_tile && o.attributes.has(ir::Key::ordered);
}

}  // namespace

BlockTurns::BlockTurns(const ir::Kernel& tile) {
  int additions = 0;
  for (const Operation& o : tile.body.body) {
    int here = adds_in_order(o) ? 1 : 0;
    for (const ir::Block& inner : o.blocks) {
      ir::for_each(inner, [&](const Operation& nested) {
        // A loop may come to it again.
        if (adds_in_order(nested)) here += 2;
      });
    }
    if (here == 0) continue;
    if (!first_) first_ = &o;
    last_ = &o;
    additions += here;
  }
  adds_again_ = additions > 1;
}

void BlockTurns::declare(Kernel& kernel, SourceLocation where) {
  if (any()) turn_.emplace(kernel.workspace("add_turn", 1, where));
}

void BlockTurns::wait(const Index& number, SourceLocation where) const {
  wait_flag((*turn_)(0), Compare::ge, number, {Semantics::acquire, Scope::gpu}, where);
}

void BlockTurns::pass_on(const Index& number, const Index& count, SourceLocation where) const {
  atomic_add((*turn_)(0), select(number == count - 1, 1 - count, 1),
             {Semantics::release, Scope::gpu}, where);
}

std::vector<Index> indices_of(const std::vector<Dim>& grid, const Index& number) {
  std::vector<Index> indices;
  Index rest = number;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const bool last = i + 1 == grid.size();
    const Index extent(grid[i]);
    indices.push_back(last ? rest : rest % extent);
    if (!last) rest = rest / extent;
  }
  return indices;
}

Dim blocks_of(const std::vector<Dim>& grid) {
  Dim blocks = 1;
  for (const Dim& extent : grid) blocks = blocks * extent;
  return blocks;
}

}  // namespace tilewright::schedules
