#pragma once

#include <functional>
#include <map>
#include <vector>

#include "schedules/tile_loads.h"

namespace tilewright::schedules {

// The products of the role of arithmetic: issued where the tile form has them, and waited for where
// something first needs them, or the registers or the stages that they read.
class ProductsInFlight {
 public:
  ProductsInFlight(const Placement& placement, const SharedPlan& plan, RoleValues& values,
                   TileLoads& loads, const std::vector<SharedTile>& buffers, Tracer& tracer)
      : placement_(placement),
        plan_(plan),
        values_(values),
        loads_(loads),
        buffers_(buffers),
        tracer_(tracer) {}

  void issue(const ir::Operation& dot);
  // The stage goes back when the last product that reads it has been waited for.
  void release_behind(ir::ValueId load, const ir::Operation& o);
  // What a loop carries on takes the registers of what it was before.
  void carried(ir::ValueId from, ir::ValueId to) { takes_over_[from] = to; }

  // Waits for the products that the operation reads, itself or inside, and for those that still
  // read the registers that it reads, or that its result will take over.
  void finish_for(const ir::Operation& o);
  // Waits for the product that the value is.
  void finish_value(ir::ValueId value, const ir::Operation& o);
  std::size_t count() const { return in_flight_.size(); }
  // Waits for all but the first `count`.
  void finish_from(std::size_t count, const ir::Operation& o);

 private:
  // A product that has been issued and not been waited for.
  struct InFlight {
    ir::ValueId result;
    Pending product;
    ir::ValueId registers;              // its operand in registers, or none
    std::vector<ir::ValueId> reads;     // loads whose stages it reads
    std::vector<ir::ValueId> releases;  // loads that nothing reads after it
  };
  void finish_if(const std::function<bool(const InFlight&)>& predicate, const ir::Operation& o);
  SharedView shared_part(const Source& source);
  SharedView left(const Source& source);
  SharedView right(const Source& source, bool spread);

  const Placement& placement_;
  const SharedPlan& plan_;
  RoleValues& values_;
  TileLoads& loads_;
  const std::vector<SharedTile>& buffers_;
  Tracer& tracer_;
  std::vector<InFlight> in_flight_;  // in the order of their issue
  std::map<ir::ValueId, ir::ValueId> takes_over_;
};

}  // namespace tilewright::schedules
