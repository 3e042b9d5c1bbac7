#include "schedules/empty_loops.h"

#include <optional>
#include <set>

#include "analysis/not_less.h"
#include "ir/replace.h"

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;

void drop_empty_loops(ir::Kernel& kernel) {
  analysis::NotLess not_less(kernel);
  std::set<ir::ValueId> empty;  // their indices
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::for_loop && not_less.proves(o.operands[0], o.operands[1])) {
      empty.insert(o.blocks[0].arguments[0]);
    }
  });
  if (empty.empty()) return;
  ir::replace(kernel, [&](const Operation& o) -> std::optional<ir::Replacement> {
    if (o.op != Op::for_loop || empty.count(o.blocks[0].arguments[0]) == 0) return {};
    return ir::Replacement{{o.operands.begin() + 3, o.operands.end()}, {}};
  });
}

}  // namespace tilewright::schedules
