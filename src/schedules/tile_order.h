#pragma once

#include <vector>

#include "schedules/placement.h"
#include "tilewright/kernel.h"

namespace tilewright::schedules {

// The order in which the grid's tiles are computed. Tiles that load the same blocks come close
// together, so that the blocks are still in L2, and the longest tiles come first.
class TileOrder {
 public:
  explicit TileOrder(const Placement& placement);
  Dim count() const;
  // Whether CTAs take tiles from a counter as they become free, instead of having them dealt out.
  // So it is if a loop's end depends on the tile, and for three warpgroups, for which it is faster.
  bool counted() const { return counted_; }
  // The indices of the grid, x first, of the tile with this number.
  std::vector<Index> indices(const Index& number) const;

 private:
  struct Axis {
    Dim extent;
    bool shared = false;     // what some loop loads does not depend on it
    bool lengthens = false;  // a loop is longer where it is greater
  };
  Dim shared_bytes(const Placement& placement, std::size_t axis) const;
  std::vector<Index> rows_of_groups(const Index& number, std::size_t shared) const;
  std::vector<Index> bands(const Index& number, std::size_t column, std::size_t row) const;
  void spread(Index number, const std::vector<std::size_t>& axes,
              std::vector<Index>& indices) const;

  std::vector<Axis> axes_;
  Dim group_;  // tiles of the other axes whose loads stay in L2 together
  bool counted_ = false;
};

}  // namespace tilewright::schedules
