#include "schedules/tile_order.h"

#include <algorithm>
#include <functional>

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

// Measured: docs/log/2026-11-21-prototypes.md.
constexpr std::int64_t kL2Bytes = 32 << 20;
constexpr int kBand = 8;
constexpr int kCountedGroups = 3;

// The loads to shared memory inside loops.
void for_each_loop_load(const Placement& placement, const ir::Block& block, bool in_loop,
                        const std::function<void(const Operation&)>& visit) {
  for (const Operation& o : block.body) {
    if (o.op == Op::load && in_loop && placement.in_ring(o)) visit(o);
    for (const ir::Block& inner : o.blocks) {
      for_each_loop_load(placement, inner, in_loop || o.op == Op::for_loop, visit);
    }
  }
}

// Which way a number goes while an index rises, as far as its operations say.
struct Trend {
  bool rises = false, falls = false;
  Trend& operator+=(const Trend& other) {
    rises |= other.rises;
    falls |= other.falls;
    return *this;
  }
  Trend operator-() const { return {falls, rises}; }
};

// What a number is multiplied with or divided by is taken not to be negative. A condition says
// whether there is anything, not how much.
Trend trend_of(const Placement& placement, ir::ValueId value, ir::ValueId index) {
  if (value == index) return {true, false};
  if (!placement.depends(value, index)) return {};
  const Operation& o = *placement.definitions[value];
  const auto of = [&](std::size_t i) { return trend_of(placement, o.operands[i], index); };
  Trend trend = of(o.op == Op::select ? 1 : 0);
  if (o.op == Op::sub) return trend += -of(1);
  if (o.op == Op::select) return trend += of(2);
  if (o.op == Op::add || o.op == Op::max || o.op == Op::min) return trend += of(1);
  const bool scaled = (o.op == Op::mul || o.op == Op::div) &&
                      (!placement.depends(o.operands[1], index) ||
                       (o.op == Op::mul && !placement.depends(o.operands[0], index)));
  if (scaled) return trend += o.op == Op::mul ? of(1) : Trend();
  return {true, true};
}

bool address_depends(const Placement& placement, const Operation& load, ir::ValueId argument) {
  const std::size_t rank = load.attributes.integers(Key::sizes).size();
  return std::any_of(load.operands.begin() + 1, load.operands.begin() + 1 + rank,
                     [&](ir::ValueId start) { return placement.depends(start, argument); });
}

}  // namespace

TileOrder::TileOrder(const Placement& placement) : counted_(placement.groups >= kCountedGroups) {
  const ir::Kernel& kernel = placement.kernel;
  // How far a warpgroup's own rows reach says nothing of the tile.
  std::vector<ir::ValueId> own;
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::own_first || o.op == Op::own_end) own.push_back(o.results[0]);
  });
  const auto of_tile = [&](ir::ValueId end) {
    return std::none_of(own.begin(), own.end(),
                        [&](ir::ValueId row) { return placement.depends(end, row); });
  };
  for (std::size_t i = 0; i < kernel.grid.size(); ++i) {
    const ir::ValueId argument = kernel.body.arguments[i];
    Axis axis{kernel.grid[i]};
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (o.op != Op::for_loop || !of_tile(o.operands[1])) return;
      counted_ |= placement.depends(o.operands[1], argument);
      Trend length = trend_of(placement, o.operands[1], argument);
      if (of_tile(o.operands[0])) length += -trend_of(placement, o.operands[0], argument);
      axis.lengthens |= length.rises;
    });
    for_each_loop_load(placement, kernel.body, false, [&](const Operation& load) {
      axis.shared |= !address_depends(placement, load, argument);
    });
    axes_.push_back(axis);
  }
  Dim others = 1;
  for (const Axis& axis : axes_) {
    if (!axis.shared) others = others * axis.extent;
  }
  group_ = others;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].shared) {
      group_ = min(others, max(kL2Bytes / max(shared_bytes(placement, i), 1), 1));
    }
  }
}

// What the tiles along the axis load together, at most: the slices of the tensors.
Dim TileOrder::shared_bytes(const Placement& placement, std::size_t axis) const {
  const ir::Kernel& kernel = placement.kernel;
  Dim bytes = 0;
  std::vector<ir::ValueId> seen;
  for_each_loop_load(placement, kernel.body, false, [&](const Operation& load) {
    if (address_depends(placement, load, kernel.body.arguments[axis])) return;
    if (std::count(seen.begin(), seen.end(), load.operands[0]) != 0) return;
    seen.push_back(load.operands[0]);
    const ir::Parameter& tensor = *kernel.parameter_of(load.operands[0]);
    const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
    Dim slice = size_of(tensor.dtype);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] != 0) slice = slice * tensor.shape[i];
    }
    bytes = bytes + slice;
  });
  return bytes;
}

Dim TileOrder::count() const {
  Dim count = 1;
  for (const Axis& axis : axes_) count = count * axis.extent;
  return count;
}

std::vector<Index> TileOrder::indices(const Index& number) const {
  std::vector<std::size_t> shared;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].shared) shared.push_back(i);
  }
  std::vector<Index> result(axes_.size(), Index(0));
  if (shared.size() == 1) {
    result = rows_of_groups(number, shared[0]);
  } else if (shared.size() == 2) {
    result = bands(number, shared[0], shared[1]);
  } else {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < axes_.size(); ++i) all.push_back(i);
    spread(number, all, result);
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].lengthens) result[i] = Index(axes_[i].extent) - 1 - result[i];
  }
  return result;
}

// All places along the shared axis for a group of the others, that in turn for each place: the long
// tiles of a whole group come before its short ones.
std::vector<Index> TileOrder::rows_of_groups(const Index& number, std::size_t shared) const {
  std::vector<std::size_t> others;
  Dim count = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (i == shared) continue;
    others.push_back(i);
    count = count * axes_[i].extent;
  }
  const Dim per_group = max(group_ * axes_[shared].extent, 1);
  const Index first = number / per_group * group_, in_group = number % per_group;
  const Index height = min(count - first, group_);
  std::vector<Index> result(axes_.size(), Index(0));
  result[shared] = in_group / height;
  spread(first + in_group % height, others, result);
  return result;
}

// A band of rows passes over the columns: what its rows load stays in L2 meanwhile.
std::vector<Index> TileOrder::bands(const Index& number, std::size_t column,
                                    std::size_t row) const {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (i != column && i != row) others.push_back(i);
  }
  const Dim &columns = axes_[column].extent, &rows = axes_[row].extent;
  std::vector<Index> result(axes_.size(), Index(0));
  Index within = number;
  if (!others.empty()) {
    const Dim plane = max(columns * rows, 1);
    spread(number / plane, others, result);
    within = number % plane;
  }
  const Dim per_band = max(columns * kBand, 1);
  const Index band = within / per_band, in_band = within % per_band;
  const Index height = min(rows - band * kBand, kBand);
  result[row] = band * kBand + in_band % height;
  result[column] = in_band / height;
  return result;
}

void TileOrder::spread(Index number, const std::vector<std::size_t>& axes,
                       std::vector<Index>& indices) const {
  Index rest = number;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Index extent(max(axes_[axes[i]].extent, 1));
    const bool last = i + 1 == axes.size();
    indices[axes[i]] = last ? rest : rest % extent;
    if (!last) rest = rest / extent;
  }
}

}  // namespace tilewright::schedules
