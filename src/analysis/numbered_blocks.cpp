#include "analysis/numbered_blocks.h"

#include <algorithm>
#include <set>

#include "analysis/definitions.h"

namespace tilewright::analysis {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class NumberedBlocks {
 public:
  explicit NumberedBlocks(const ir::Kernel& kernel)
      : kernel_(kernel), definitions_(definitions(kernel)) {
    visit(kernel.body);
  }
  std::vector<NumberedBlock> found() && { return std::move(found_); }

 private:
  void visit(const ir::Block& block) {
    for (const Operation& o : block.body) {
      if (o.op == Op::for_loop && carries_tiles(o)) look_at(o);
      for (const ir::Block& inner : o.blocks) visit(inner);
    }
  }

  bool carries_tiles(const Operation& loop) const {
    return std::any_of(loop.results.begin(), loop.results.end(), [&](ValueId value) {
      return kernel_.type(value).kind == ir::Type::Kind::tile;
    });
  }

  void look_at(const Operation& loop) {
    std::set<ValueId> inside;
    ir::for_each(loop.blocks[0],
                 [&](const Operation& o) { inside.insert(o.results.begin(), o.results.end()); });
    for (const Operation& o : loop.blocks[0].body) {
      if (o.op != Op::load) continue;
      if (const Operation* number = number_of(o, inside)) {
        found_.push_back(
            {kernel_.parameter_of(o.operands[0])->name, loop.where, o.where, number->where});
      }
    }
  }

  // What of the loop loads the number by which the block's place is computed.
  const Operation* number_of(const Operation& load, const std::set<ValueId>& inside) const {
    std::vector<ValueId> open(load.operands.begin() + 1, load.operands.end());
    std::set<ValueId> seen;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      const Operation* made = definitions_[value];
      if (!made || inside.count(value) == 0 || !seen.insert(value).second) continue;
      if (made->op == Op::load_index) return made;
      open.insert(open.end(), made->operands.begin(), made->operands.end());
    }
    return nullptr;
  }

  const ir::Kernel& kernel_;
  std::vector<const Operation*> definitions_;
  std::vector<NumberedBlock> found_;
};

}  // namespace

std::vector<NumberedBlock> numbered_blocks(const ir::Kernel& kernel) {
  return NumberedBlocks(kernel).found();
}

}  // namespace tilewright::analysis
