#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"
#include "simulator/tile_value.h"
#include "support/arguments.h"

namespace tilewright::simulator {

// A box of a tensor, as load and store name it: `sizes` has 0 for an axis that is indexed away.
struct Box {
  const TensorArgument* tensor;
  std::vector<std::int64_t> starts, limits, sizes;
};

// Of a load or store: `bounds` are the start of each axis, then the limit of each.
Box box_of(const ir::Operation& operation, const TensorArgument& tensor,
           const std::vector<std::int64_t>& bounds);

// Whether the axes that are indexed away are indexed within bounds.
bool index_exists(const Box& box);
// Of the tile's axes: how much of the box exists. All zero unless index_exists(box). What of it
// lies outside of the tensor is read as zero, and not written.
std::vector<std::int64_t> existing_extents(const Box& box);

// Calls it for each row of the elements within `extents` that lie inside of the tensor, for a tile
// of this shape: the first element, how many bytes apart they are, and how many.
using VisitRow = std::function<void(const std::byte* first, std::int64_t step, std::int64_t count)>;
void for_each_row(const Box& box, const std::vector<std::int64_t>& shape,
                  const std::vector<std::int64_t>& extents, const VisitRow& visit);

// The elements within the tile's extents, which lie inside existing_extents(box).
template <typename Real>
void read_box(const Box& box, Value& tile);
template <typename Real>
void write_box(const Box& box, const Value& tile, const std::vector<std::int64_t>& extents);

}  // namespace tilewright::simulator
