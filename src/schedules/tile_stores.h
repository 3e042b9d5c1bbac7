#pragma once

#include <vector>

#include "schedules/role_values.h"
#include "schedules/shared_plan.h"

namespace tilewright::schedules {

// The stores of the role of arithmetic: through shared memory by TMA where that is planned, else by
// the threads.
class TileStores {
 public:
  TileStores(const Placement& placement, const SharedPlan& plan, RoleValues& values,
             const std::vector<SharedTile>& buffers)
      : placement_(placement), plan_(plan), values_(values), buffers_(buffers) {}

  // Also of tiles that are added.
  void store(const ir::Operation& o);

 private:
  void turned(const ir::Operation& o);
  void own(const ir::Operation& o);
  // By the threads.
  void write(const ir::Operation& o, const TensorView& view, const Tile& tile) const;
  void staged(const ir::Operation& o, const SharedPlan::Staging& plan);
  Tile by_rows(const Tile& tile, const ir::Operation& o) const;
  Tile columns(ir::ValueId value, int first, int count, const ir::Operation& o);

  const Placement& placement_;
  const SharedPlan& plan_;
  RoleValues& values_;
  const std::vector<SharedTile>& buffers_;
};

}  // namespace tilewright::schedules
