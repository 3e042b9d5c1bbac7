#pragma once

#include <functional>
#include <vector>

#include "schedules/placement.h"
#include "schedules/retracing.h"

namespace tilewright::schedules {

// What the values of the tile form are in the role that is being recorded: of a tile that
// warpgroups share, the part of one.
class RoleValues final : public Recording {
 public:
  // Which part of a view of global memory: of one whose rows are in parts the warpgroup's, or a
  // warp's, and of those a piece of the columns.
  struct Part {
    int row_parts = 0;
    bool of_warp = false;
    int columns = 0;
    Index piece = 0;
    int rows = 0;  // of a run of rows instead, and which
    int run = 0;
    bool whole = false;  // it ends no earlier than its tensor
  };

  explicit RoleValues(const Placement& placement)
      : Recording(placement.kernel), placement_(placement) {}

  void begin_role(bool loading, const Index& group);

  // Whether the role is the one that loads.
  bool loading() const { return loading_; }
  Index group() { return Index(tracer().handle(group_)); }

  // The part of a tile that one warpgroup has.
  ir::Type local(ir::ValueId value) const override;
  // Which run of rows this warpgroup has of so many, and which part of the tile's columns.
  Index row_part(int parts);
  Index row_part(ir::ValueId value) { return row_part(placement_.row_parts(value)); }
  Index column_part(ir::ValueId value);
  // Calls `body` where this warpgroup is the one that hands on its part of the tile.
  void when_owner(ir::ValueId value, const std::function<void()>& body, SourceLocation where);
  int warp_rows() const { return placement_.group_rows / target::kGroupWarps; }
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
