#include "cpu/layout.h"

#include <algorithm>

#include "support/diagnostic.h"

namespace tilewright::cpu {
static_assert(static_cast<int>(Element::boolean) == static_cast<int>(DType::boolean));

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

Element element_of(DType dtype) { return static_cast<Element>(dtype); }
int bytes_of(Element element) { return size_of(static_cast<DType>(element)); }

Lane lane_of(DType dtype) {
  if (is_float(dtype)) return Lane::f32;
  if (dtype == DType::boolean) return Lane::boolean;
  return dtype == DType::i64 ? Lane::i64 : Lane::i32;
}

Tile make_tile(DType dtype, const std::vector<std::int64_t>& shape, const std::vector<bool>& held) {
  Tile tile;
  tile.element = element_of(dtype);
  tile.rank = shape.size();
  std::int64_t stride = bytes_of(tile.element);
  bool is_innermost = true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    tile.shape[axis] = shape[axis];
    if (shape[axis] == 1 || !held[axis]) continue;
    tile.strides[axis] = stride;
    stride *= is_innermost ? round_up(shape[axis], kGroup) : shape[axis];
    is_innermost = false;
  }
  tile.bytes = round_up(is_innermost ? stride * kGroup : stride, kAlignment);
  return tile;
}

Tile make_tile(DType dtype, const std::vector<std::int64_t>& shape) {
  return make_tile(dtype, shape, std::vector<bool>(shape.size(), true));
}

bool is_stretched(const Tile& tile) {
  for (std::size_t axis = 0; axis < tile.rank; ++axis) {
    if (tile.shape[axis] != 1 && tile.strides[axis] == 0) return true;
  }
  return false;
}

bool lie_alike(const Tile& a, const Tile& b) {
  const auto held = [](const Tile& tile) {
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 0; axis < tile.rank; ++axis) {
      if (tile.shape[axis] == 1) continue;
      axes.push_back(tile.shape[axis]);
      axes.push_back(tile.strides[axis]);
    }
    return axes;
  };
  return a.element == b.element && a.bytes == b.bytes && held(a) == held(b);
}

std::size_t contiguous_axis(const Tile& tile) {
  for (std::size_t axis = tile.rank; axis-- > 0;) {
    if (tile.strides[axis] != 0) return axis;
  }
  return Walk::kNoAxis;
}

Walk walk_of(const Tile& tile) {
  const std::size_t columns = contiguous_axis(tile);
  std::size_t rows = Walk::kNoAxis;
  for (std::size_t axis = 0; axis < tile.rank && axis < columns; ++axis) {
    if (tile.strides[axis] != 0) rows = axis;
  }
  return walk_of(tile, columns == Walk::kNoAxis ? Walk::kNoAxis : rows, columns);
}

Walk walk_of(const Tile& tile, std::size_t rows, std::size_t columns) {
  Walk walk{rows, columns, {}};
  for (std::size_t axis = 0; axis < tile.rank; ++axis) {
    if (axis != rows && axis != columns && tile.strides[axis] != 0) walk.outer.push_back(axis);
  }
  return walk;
}

}  // namespace tilewright::cpu
