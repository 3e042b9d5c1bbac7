#include "schedules/role_values.h"

namespace tilewright::schedules {

using ir::Operation;
using ir::Type;
using ir::ValueId;

void RoleValues::begin_role(bool loading, const Index& group) {
  loading_ = loading;
  group_ = id(group);
}

Type RoleValues::local(ValueId value) const {
  Type type = tile().type(value);
  if (placement_.has_rows(value)) type.shape[0] = placement_.group_rows;
  if (const int parts = placement_.column_parts(value); parts > 1) type.shape[1] /= parts;
  return type;
}

Index RoleValues::row_part(int parts) {
  if (parts == 1) return Index(0);
  return parts == placement_.groups ? group() : group() % parts;
}

Index RoleValues::column_part(ValueId value) {
  const int parts = placement_.row_parts(value);
  return parts == 1 ? group() : group() / parts;
}

void RoleValues::when_owner(ValueId value, const std::function<void()>& body,
                            SourceLocation where) {
  const int owners = placement_.owners(value);
  if (owners == placement_.groups) return body();
  when(owners == 1 ? group() == 0 : group() < owners, body, {}, where);
}

RoleValues::Part RoleValues::own_part(ValueId value) {
  Part part{placement_.has_rows(value) ? placement_.row_parts(value) : 0};
  if (placement_.column_parts(value) > 1) {
    part.columns = static_cast<int>(local(value).shape[1]);
    part.piece = column_part(value);
  }
  return part;
}

TensorView RoleValues::view(const Operation& o, std::size_t first, const Part& part) {
  std::vector<std::size_t> axes;  // of the tensor, that the tile has
  const std::vector<std::int64_t>& sizes = o.attributes.integers(ir::Key::sizes);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != 0) axes.push_back(axis);
  }
  return Recording::view(o, first, [&](Block block, int axis) {
    const std::size_t own = axes[static_cast<std::size_t>(axis)];
    if (part.whole && placement_.extents.ends_earlier(o, own)) {
      const Dim& all = tile().parameter_of(o.operands[0])->shape[own];
      block = Block(block.start(), block.size(), Index(all));
    }
    if (axis == 0 && part.row_parts > 0) {
      block = block.part(row_part(part.row_parts), placement_.group_rows);
    }
    if (axis == 0 && part.of_warp) block = block.part(warp_index(), warp_rows());
    if (axis == 0 && part.rows > 0) block = block.part(part.run, part.rows);
    if (axis == 1 && part.columns > 0) block = block.part(part.piece, part.columns);
    return block;
  });
}

}  // namespace tilewright::schedules
