#include "schedules/role_values.h"

namespace tilewright::schedules {

using ir::Key;
using ir::Operation;
using ir::Type;
using ir::ValueId;

void RoleValues::begin_role(bool loading, const Index& group) {
  loading_ = loading;
  group_ = id(group);
}

void RoleValues::begin_tile(const std::vector<Index>& indices) {
  values_.assign(tile_.types.size(), ir::kNoValue);
  for (const auto& [value, scalar] : parameters_.scalars) values_[value] = id(scalar);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    values_[tile_.body.arguments[i]] = id(indices[i]);
  }
}

bool RoleValues::spread_by_columns(const Type& type) const {
  return placement_.by_columns() && type.is_tile() && type.shape.size() == 2 &&
         type.shape[1] == placement_.wide;
}

Type RoleValues::local(ValueId value) const {
  Type type = tile_.type(value);
  if (spread_by_columns(type)) {
    type.shape[1] /= placement_.groups;
  } else if (placement_.has_rows(value)) {
    type.shape[0] = kGroupRows;
  }
  return type;
}

RoleValues::Part RoleValues::own_part(ValueId value) {
  Part part{placement_.has_rows(value)};
  if (spread_by_columns(tile_.type(value))) {
    part.columns = static_cast<int>(local(value).shape[1]);
    part.piece = group();
  }
  return part;
}

Index RoleValues::number(const Operation& o, std::size_t operand) {
  if (!known(o.operands[operand])) {
    unfit(o, "where it reads depends on what was computed", "compute addresses from indices");
  }
  return index(o.operands[operand]);
}

TensorView RoleValues::view(const Operation& o, std::size_t first, const Part& part) {
  const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
  std::vector<Selector> selectors;
  int seen = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const Index start = number(o, first + axis);
    if (sizes[axis] == 0) {
      selectors.push_back(Selector(start));
      continue;
    }
    Block block(start, static_cast<int>(sizes[axis]), number(o, first + sizes.size() + axis));
    if (seen == 0 && part.spread) block = block.part(row_part(), kGroupRows);
    if (seen == 0 && part.of_warp) block = block.part(warp_index(), kWarpRows);
    if (seen == 0 && part.rows > 0) block = block.part(part.run, part.rows);
    if (seen == 1 && part.columns > 0) block = block.part(part.piece, part.columns);
    ++seen;
    selectors.push_back(Selector(block));
  }
  return TensorView(tensor(o.operands[0]).handle(), std::move(selectors), o.where);
}

}  // namespace tilewright::schedules
