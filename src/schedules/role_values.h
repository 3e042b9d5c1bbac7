#pragma once

#include <vector>

#include "schedules/placement.h"
#include "schedules/retracing.h"

namespace tilewright::schedules {

inline constexpr int kWarpRows = 16;  // of a warpgroup's 64

// What the values of the tile form are in the role that is being recorded: of a tile that
// warpgroups share, the part of one.
class RoleValues final : public Recording {
 public:
  // Which part of a view of global memory: of a spread one the warpgroup's rows, or a warp's, and
  // of those a piece of the columns.
  struct Part {
    bool spread = false;
    bool of_warp = false;
    int columns = 0;
    Index piece = 0;
    int rows = 0;  // of a run of rows instead, and which
    int run = 0;
  };

  explicit RoleValues(const Placement& placement)
      : Recording(placement.kernel), placement_(placement) {}

  void begin_role(bool loading, const Index& group);

  // Whether the role is the one that loads.
  bool loading() const { return loading_; }
  Index group() { return Index(tracer().handle(group_)); }

  bool spread_by_columns(const ir::Type& type) const;
  // The part of a tile that one warpgroup has.
  ir::Type local(ir::ValueId value) const override;
  // Which run of 64 rows this warpgroup has.
  Index row_part() { return placement_.by_columns() ? Index(0) : group(); }
  // What of a tile this warpgroup has.
  Part own_part(ir::ValueId value);
  // The view that a load or store names, whose starts begin at operand `first`.
  TensorView view(const ir::Operation& o, std::size_t first, const Part& part);

 private:
  const Placement& placement_;
  bool loading_ = false;
  ir::ValueId group_ = ir::kNoValue;
};

}  // namespace tilewright::schedules
