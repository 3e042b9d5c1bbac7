#include "passes/lowering/operand_side.h"

namespace tilewright::passes {

OperandSide operand_side(RoleCode& code, Views& views, const View& view, int k_axis,
                         std::int64_t depth_bytes, DescribeOperand describe,
                         const ir::Operation& o) {
  const ir::WgmmaOperand operand = describe(*view.layout, k_axis, o.where);
  OperandSide side;
  side.shared = view.shared;
  side.offset = views.offset(view, true, o.where);
  side.descriptor = static_cast<std::int64_t>(operand.high_bits >> 14);  // above the address
  side.transposed = operand.major == ir::Major::mn;
  side.steps = operand.k_steps;
  const std::int64_t step_k = depth_bytes / size_of(code.type(view.shared).dtype);
  if (k_axis == 1) {
    if (view.column % step_k != 0) views.panel_step(view, o);
    side.first = view.column / step_k;
  } else {
    const std::int64_t slice = ir::wgmma_slice_offset(*view.layout, k_axis, view.column, o.where);
    for (std::int64_t& step : side.steps) step += slice;
  }
  return side;
}

}  // namespace tilewright::passes
