#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "schedules/tile_loads.h"

namespace tilewright::schedules {

// The products of the role of arithmetic: how they are issued, and where they are waited for. A
// target multiplies in one way or another; the schedule knows this much of it.
class Products {
 public:
  Products(const Placement& placement, const SharedPlan& plan, RoleValues& values, TileLoads& loads,
           const std::vector<SharedTile>& buffers, Tracer& tracer)
      : placement_(placement),
        plan_(plan),
        values_(values),
        loads_(loads),
        buffers_(buffers),
        tracer_(tracer) {}
  virtual ~Products() = default;

  // What the kernel needs for them. Whether the warps of all warpgroups meet for it.
  virtual bool declare() { return false; }
  // Before and behind the tiles of the role. `all`: where its warps meet, if anything makes them.
  virtual void begin_role(std::optional<NamedBarrier>& /*all*/) {}
  virtual void end_role(std::optional<NamedBarrier>& /*all*/) {}

  virtual void issue(const ir::Operation& dot) = 0;
  // The stage goes back when the last product that reads it is over.
  virtual void release_behind(ir::ValueId load, const ir::Operation& o) = 0;
  // What a loop carries on takes the place of what it was before.
  virtual void carried(ir::ValueId /*from*/, ir::ValueId /*to*/) {}
  // Whether registers hold what a loop or a condition results in.
  virtual bool in_registers(ir::ValueId /*result*/) const { return true; }
  // Before and behind a loop, or a condition.
  virtual void enter(const ir::Operation& /*o*/) {}
  virtual void leave(const ir::Operation& /*o*/) {}

  // Waits for the products that the operation reads, itself or inside, and for those that still
  // read what it is about to write.
  virtual void finish_for(const ir::Operation& o) = 0;
  // Waits for the product that the value is.
  virtual void finish_value(ir::ValueId value, const ir::Operation& o) = 0;
  // Those that have been issued, and waits for all but the first `count` of them.
  virtual std::size_t count() const = 0;
  virtual void finish_from(std::size_t count, const ir::Operation& o) = 0;

 protected:
  // What a product reads from shared memory: this warpgroup's rows of its first operand, and the
  // second one whole, but for results that are spread by columns.
  SharedView left(const Source& source, ir::ValueId result);
  SharedView right(const Source& source, ir::ValueId result);

  const Placement& placement_;
  const SharedPlan& plan_;
  RoleValues& values_;
  TileLoads& loads_;
  const std::vector<SharedTile>& buffers_;
  Tracer& tracer_;

 private:
  SharedView shared_part(const Source& source);
};

}  // namespace tilewright::schedules
