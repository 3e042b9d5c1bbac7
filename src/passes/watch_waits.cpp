#include "passes/watch_waits.h"

#include <cstdint>

namespace tilewright::passes {
namespace {

std::int64_t number(ir::Block& block, std::int64_t next) {
  for (ir::Operation& operation : block.body) {
    if (operation.op == ir::Op::wait_flag || operation.op == ir::Op::mbarrier_wait) {
      operation.attributes.set(ir::Key::watched, next++);
    }
    for (ir::Block& inner : operation.blocks) next = number(inner, next);
  }
  return next;
}

}  // namespace

int watch_waits(ir::Kernel& kernel) { return static_cast<int>(number(kernel.body, 0)); }

}  // namespace tilewright::passes
