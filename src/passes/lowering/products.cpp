#include "passes/lowering/products.h"

#include <algorithm>
#include <utility>

#include "passes/lowering/operand_side.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

void ProductLowering::begin_block(const ir::Block& block) {
  std::map<ValueId, ValueId> next;  // of what a function computes here, the product behind it
  std::vector<ValueId> waiting;
  for (const Operation& o : block.body) {
    if (ir::info(o.op).elementwise() && code_.in_registers(o.results[0])) {
      waiting.push_back(o.results[0]);
    }
    if (ir::info(o.op).completion != ir::Completion::products) continue;
    for (const ValueId value : std::exchange(waiting, {})) next[value] = o.results[0];
    const auto before = o.operands.size() > 2 ? next.find(o.operands[2]) : next.end();
    if (before == next.end() || before->second == o.results[0]) continue;
    ready_[before->second].push_back(o.operands[2]);
  }
}

void ProductLowering::product(const Operation& o) {
  const ValueId result = o.results[0], accumulator = code_.array(result);
  const Type type = code_.type(result);
  const bool accumulates = o.operands.size() > 2;
  if (accumulates) code_.copy(result, o.operands[2], o.where);
  const bool a_in_registers = code_.in_registers(o.operands[0]);
  const View b = views_.at(o.operands[1]);
  const DType dtype = code_.type(o.operands[1]).dtype;
  const std::int64_t step_k = depth_bytes_ / size_of(dtype);
  const int b_axis = b.transposed ? 1 : 0;
  const std::int64_t depth = code_.type(o.operands[1]).shape[b_axis];

  std::vector<ValueId> pinned{accumulator};
  if (a_in_registers) pinned.push_back(code_.array(o.operands[0]));
  // ptxas serialises products when what is read beside this one shares its registers.
  if (const auto copy = copied_.find(accumulator); copy != copied_.end()) {
    pinned.insert(pinned.begin(), copy->second);
  }
  // Computed while this one is under way, they would wait for it: ptxas takes them for its results.
  for (const ValueId value : ready_[result]) pinned.push_back(code_.array(value));
  const auto side = [&](const View& view, int k_axis) {
    return operand_side(code_, views_, view, k_axis, depth_bytes_, ir::wgmma_operand, o);
  };
  const OperandSide right = side(b, b_axis);
  OperandSide left;
  if (!a_in_registers) {
    const View a = views_.at(o.operands[0]);
    left = side(a, a.transposed ? 0 : 1);
  }
  code_.emit(Op::wgmma_fence, pinned, {}, o.where);
  const ValueId yes = code_.boolean(true, o.where);
  const ValueId first = accumulates ? yes : code_.boolean(false, o.where);
  for (std::int64_t step = 0; step * step_k < depth; ++step) {
    ir::Attributes attributes{{Key::n, type.shape[1]},
                              {Key::k, step_k},
                              {Key::descriptor_b, right.descriptor},
                              {Key::step_b, right.steps.at(right.first + step)},
                              {Key::transpose_b, right.transposed}};
    std::vector<ValueId> operands{accumulator};
    if (a_in_registers) {
      operands.push_back(code_.array(o.operands[0]));
      attributes.set(Key::register_, step * 4);
    } else {
      operands.insert(operands.end(), {left.shared, left.offset});
      attributes.set(Key::descriptor_a, left.descriptor);
      attributes.set(Key::step_a, left.steps.at(left.first + step));
      attributes.set(Key::transpose_a, left.transposed);
    }
    operands.insert(operands.end(), {right.shared, right.offset, step == 0 ? first : yes});
    code_.emit(a_in_registers ? Op::wgmma_rs : Op::wgmma_ss, std::move(operands),
               std::move(attributes), o.where);
  }
  code_.emit(Op::wgmma_commit, {}, {}, o.where);
}

void ProductLowering::wait(const Operation& o) {
  std::vector<ValueId> readable;
  // Where the product wrote, which the copy below may read.
  if (o.op == Op::wait) readable.push_back(code_.array(o.operands[0]));
  // Of the products that it continues as well, and of those of the round before.
  for (const ValueId a : operands_.of(o.operands[0])) {
    const ValueId array = code_.array(a);
    if (std::find(readable.begin(), readable.end(), array) == readable.end()) {
      readable.push_back(array);
    }
  }
  code_.emit(Op::wgmma_wait, std::move(readable), {{Key::count, o.attributes.integer(Key::count)}},
             o.where);
  if (o.op != Op::wait || !code_.must_move(o.results[0], o.operands[0], o.where)) return;
  code_.copy(o.results[0], o.operands[0], o.where);
  copied_[code_.array(o.operands[0])] = code_.array(o.results[0]);
}

}  // namespace tilewright::passes
