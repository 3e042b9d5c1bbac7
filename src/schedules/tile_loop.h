#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "schedules/role_values.h"
#include "schedules/tile_order.h"

namespace tilewright::schedules {

// The persistent loop over tiles: as many CTAs as multiprocessors. Tiles are dealt out beforehand,
// or taken from a counter by the producer, which sends the place of each: the divisions take their
// time. A first index of -1 ends the work.
class TileLoop {
 public:
  // Declares what the kernel needs for it.
  // In turn: tiles are dealt out by their numbers, x fastest.
  TileLoop(const Placement& placement, RoleValues& values, bool in_turn);

  // Records `tile` for the indices of each tile, in the role that is being recorded.
  using Body = std::function<void(const std::vector<Index>& indices)>;
  void each(const Body& tile);
  // Inside of it, of tiles in turn.
  const Index& number() const { return *number_; }
  Dim count() const { return order_.count(); }

 private:
  void dealt(const Body& tile);
  void produced(const Body& tile);
  void consumed(const Body& tile);

  const ir::Kernel& tile_;
  RoleValues& values_;
  const TileOrder order_;
  const bool in_turn_;
  std::optional<Index> number_;
  std::unique_ptr<Ring> numbers_;  // of tiles that are taken from a counter
  std::optional<Tensor> next_;
};

}  // namespace tilewright::schedules
