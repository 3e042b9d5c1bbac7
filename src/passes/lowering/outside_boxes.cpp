#include "passes/lowering/outside_boxes.h"

#include <algorithm>

#include "analysis/nonnegative.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

// Whether copies have an index on the axis, which lies in the tensor unless the launch gives it.
bool is_index(const ir::Operation& map, std::int64_t axis) {
  if (map.attributes.integers(Key::box)[static_cast<std::size_t>(axis)] != 1) return false;
  const ir::Attribute* blocks = map.attributes.find(Key::single);
  if (!blocks) return true;
  const auto& single = std::get<std::vector<std::int64_t>>(*blocks);
  return std::count(single.begin(), single.end(), axis) == 0;
}

}  // namespace

OutsideBoxes::OutsideBoxes(const ir::Kernel& scheduled)
    : kernel_(scheduled),
      loaded_(kernel_),
      nonnegative_(analysis::nonnegative_values(kernel_)),
      not_less_(kernel_) {}

ValueId OutsideBoxes::condition(RoleCode& code, const ir::Operation& copy, const ir::Operation& map,
                                std::int64_t column) const {
  const std::vector<Dim>& shape = kernel_.parameter_of(map.operands[0])->shape;
  const std::vector<std::int64_t>& box = map.attributes.integers(Key::box);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::size_t first = copy.operands.size() - shape.size();
  ValueId outside = ir::kNoValue;
  const auto add_not_above = [&](ValueId a, ValueId b) {
    const auto boolean = [&](Op op, std::vector<ValueId> operands) {
      return code.scalar(op, std::move(operands), {}, DType::boolean, copy.where);
    };
    const ValueId holds = boolean(Op::le, {a, b});
    outside = outside == ir::kNoValue ? holds : boolean(Op::logical_or, {outside, holds});
  };
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    ValueId start = copy.operands[first + i];
    if (is_index(map, axis) && !loaded_.source(start)) continue;
    const std::int64_t more = axis == rank - 1 ? column : 0;
    const bool may_be_behind = !not_less_.proves(shape[i], start, -1 - more);
    // A block begins in the tensor on a ragged axis: its coordinate is not negative.
    const bool may_be_before = axis != map.attributes.integer(Key::ragged) && !nonnegative_[start];
    if (more != 0) start = code.add(start, code.integer(more, copy.where), copy.where);
    if (may_be_behind) {
      add_not_above(code.scalar(Op::dim, {}, {{Key::dim, shape[i]}}, i32, copy.where), start);
    }
    if (may_be_before) add_not_above(start, code.integer(-box[i], copy.where));
  }
  return outside == ir::kNoValue ? code.boolean(false, copy.where) : outside;
}

}  // namespace tilewright::passes
