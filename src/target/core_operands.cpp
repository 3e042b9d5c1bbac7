#include "target/core_operands.h"

namespace tilewright::target {

CoreOperands::CoreOperands(const ir::Kernel& kernel, const Core& core)
    : kernel_(kernel), core_(core), made_(kernel.types.size(), nullptr) {
  ir::for_each(kernel.body, [this](const ir::Operation& o) {
    if (o.op == ir::Op::memory || o.op == ir::Op::window) made_[o.results[0]] = &o;
  });
}

CoreOperand CoreOperands::window(ir::ValueId window) const {
  const ir::Operation& made = *made_[window];
  const ir::Type& type = kernel_.type(window);
  return {&space_of(made.operands[0]),
          {type.shape[0], type.shape[1], type.dtype},
          ir::is_transposed(made)};
}

CoreOperand CoreOperands::part(const ir::Parameter& tensor, const ir::Operation& copy) const {
  const std::vector<std::int64_t>& sizes = copy.attributes.integers(ir::Key::sizes);
  const ir::Extent2 extent = ir::box_extent(sizes);
  return {nullptr, {extent.rows, extent.columns, tensor.dtype}, false, ir::box_matrices(sizes)};
}

const CoreSpace& CoreOperands::space_of(ir::ValueId memory) const {
  return *core_.space(made_[memory]->attributes.text(ir::Key::space));
}

Matrix CoreOperands::matrix_of(ir::ValueId memory) const {
  const ir::Type& type = kernel_.type(memory);
  return {type.shape[1], type.shape[2], type.dtype};
}

}  // namespace tilewright::target
