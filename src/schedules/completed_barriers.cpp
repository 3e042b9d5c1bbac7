#include "schedules/completed_barriers.h"

namespace tilewright::schedules {

CompletedBarriers::CompletedBarriers(const ir::Kernel& kernel) {
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    constexpr std::size_t kWithCta = 3;  // operands of an arrival at another CTA's
    if (operation.op == ir::Op::mbarrier_arrive && operation.operands.size() == kWithCta) {
      by_others.insert(operation.operands[0]);
    }
    const ir::Family family = ir::info(operation.op).family;
    if (family != ir::Family::bulk_copy && family != ir::Family::tensor_commit) return;
    for (const ir::ValueId operand : operation.operands) {
      if (!kernel.type(operand).is(ir::Type::Kind::mbarriers)) continue;
      (family == ir::Family::bulk_copy ? by_copies : by_products).insert(operand);
    }
  });
}

}  // namespace tilewright::schedules
