#include "schedules/role_values.h"

namespace tilewright::schedules {

using ir::Operation;
using ir::Type;
using ir::ValueId;

void RoleValues::begin_role(bool loading, const Index& group) {
  loading_ = loading;
  group_ = id(group);
}

bool RoleValues::spread_by_columns(const Type& type) const {
  return placement_.by_columns() && type.is_tile() && type.shape.size() == 2 &&
         type.shape[1] == placement_.wide;
}

Type RoleValues::local(ValueId value) const {
  Type type = tile().type(value);
  if (spread_by_columns(type)) {
    type.shape[1] /= placement_.groups;
  } else if (placement_.has_rows(value)) {
    type.shape[0] = kGroupRows;
  }
  return type;
}

RoleValues::Part RoleValues::own_part(ValueId value) {
  Part part{placement_.has_rows(value)};
  if (spread_by_columns(tile().type(value))) {
    part.columns = static_cast<int>(local(value).shape[1]);
    part.piece = group();
  }
  return part;
}

TensorView RoleValues::view(const Operation& o, std::size_t first, const Part& part) {
  return Recording::view(o, first, [&](Block block, int axis) {
    if (axis == 0 && part.spread) block = block.part(row_part(), kGroupRows);
    if (axis == 0 && part.of_warp) block = block.part(warp_index(), kWarpRows);
    if (axis == 0 && part.rows > 0) block = block.part(part.run, part.rows);
    if (axis == 1 && part.columns > 0) block = block.part(part.piece, part.columns);
    return block;
  });
}

}  // namespace tilewright::schedules
