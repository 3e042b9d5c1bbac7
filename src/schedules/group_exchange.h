#pragma once

#include <optional>
#include <vector>

#include "schedules/products.h"

namespace tilewright::schedules {

// Computed tiles of which warpgroups, or products, read more than the part that each warpgroup has:
// they pass through shared memory.
class GroupExchange {
 public:
  GroupExchange(const Placement& placement, const SharedPlan& plan, RoleValues& values,
                Products& products, const std::vector<SharedTile>& buffers, Tracer& tracer)
      : placement_(placement),
        plan_(plan),
        values_(values),
        products_(products),
        buffers_(buffers),
        tracer_(tracer) {}

  // Where the warps of all warpgroups meet, if anything makes them.
  void meet_at(std::optional<NamedBarrier>& all_groups) { all_groups_ = &all_groups; }
  // Behind the operation that makes the value: warpgroups put their parts into shared memory; of
  // what all have, the first one does. Nothing for values that are not exchanged.
  void put(ir::ValueId value, const ir::Operation& o);
  // What a transpose, a slice or a reshape takes of a tile that has been put there.
  void take(const ir::Operation& o);

 private:
  void put_part(ir::ValueId value, const ir::Operation& o);

  const Placement& placement_;
  const SharedPlan& plan_;
  RoleValues& values_;
  Products& products_;
  const std::vector<SharedTile>& buffers_;
  Tracer& tracer_;
  std::optional<NamedBarrier>* all_groups_ = nullptr;
};

}  // namespace tilewright::schedules
