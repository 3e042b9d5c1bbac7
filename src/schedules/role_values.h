#pragma once

#include <vector>

#include "language/explicit_tracing.h"
#include "schedules/placement.h"
#include "schedules/retracing.h"
#include "tilewright/hopper.h"

namespace tilewright::schedules {

inline constexpr int kWarpRows = 16;  // of a warpgroup's 64

// What the values of the tile form are in the role that is being recorded: of a tile that
// warpgroups share, the part of one.
class RoleValues {
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

  RoleValues(const ir::Kernel& tile, const Placement& placement, Tracer& tracer)
      : tile_(tile), placement_(placement), tracer_(tracer) {}

  void declared(Parameters parameters) { parameters_ = std::move(parameters); }
  void begin_role(bool loading, const Index& group);
  void begin_tile(const std::vector<Index>& indices);

  // Whether the role is the one that loads.
  bool loading() const { return loading_; }
  ir::ValueId& operator[](ir::ValueId value) { return values_[value]; }
  bool known(ir::ValueId value) const { return values_[value] != ir::kNoValue; }
  template <typename Value>
  ir::ValueId id(const Value& value) {
    return tracer_.use(value.handle(), "schedule", tile_.where);
  }
  Index index(ir::ValueId value) { return Index(tracer_.handle(values_[value])); }
  Tile tile(ir::ValueId value) { return Tile(tracer_.handle(values_[value])); }
  Index group() { return Index(tracer_.handle(group_)); }
  const Tensor& tensor(ir::ValueId tensor) const { return parameters_.tensors.at(tensor); }
  // Records the tensor of another rank in the role.
  void peer(const ir::Operation& o) {
    parameters_.tensors.insert_or_assign(o.results[0],
                                         tensor(o.operands[0]).at({number(o, 1), o.where}));
  }

  bool scalar(ir::ValueId value) const { return tile_.type(value).is_scalar(); }
  bool spread_by_columns(const ir::Type& type) const;
  // The part of a tile that one warpgroup has.
  ir::Type local(ir::ValueId value) const;
  // Which run of 64 rows this warpgroup has.
  Index row_part() { return placement_.by_columns() ? Index(0) : group(); }
  // What of a tile this warpgroup has.
  Part own_part(ir::ValueId value);
  // A scalar operand, which the producer may not have.
  Index number(const ir::Operation& o, std::size_t operand);
  // The view that a load or store names, whose starts begin at operand `first`.
  TensorView view(const ir::Operation& o, std::size_t first, const Part& part);

 private:
  const ir::Kernel& tile_;
  const Placement& placement_;
  Tracer& tracer_;
  Parameters parameters_;
  std::vector<ir::ValueId> values_;
  bool loading_ = false;
  ir::ValueId group_ = ir::kNoValue;
};

}  // namespace tilewright::schedules
