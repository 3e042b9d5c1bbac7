#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "schedules/role_values.h"
#include "schedules/shared_plan.h"

namespace tilewright::schedules {

// The loads of a kernel in both roles: copies into rings and what is read from there, and loads
// straight to registers.
class TileLoads {
 public:
  TileLoads(const Placement& placement, const SharedPlan& plan, RoleValues& values, Tracer& tracer)
      : placement_(placement), plan_(plan), values_(values), tracer_(tracer) {}

  void declare_rings(Kernel& kernel);
  // Where the warps of all warpgroups meet, if anything makes them.
  void meet_at(std::optional<NamedBarrier>& all_groups) { all_groups_ = &all_groups; }
  void begin_role() { slots_.clear(); }

  void load(const ir::Operation& o);
  // Whether the arithmetic holds a stage with what was loaded.
  bool holds(ir::ValueId load) const { return slots_.count(load) != 0; }
  // What the load filled of it.
  SharedView stage(ir::ValueId load) const;
  void release(ir::ValueId load, const ir::Operation& o);
  // Gives back the stages that were read into registers, once something else waits: the fence takes
  // its time. Without it TMA might write a stage while the reads are still under way.
  void release_read(const ir::Operation& o);

 private:
  void meet(const ir::Operation& load, bool needed);
  void produce(const ir::Operation& o);
  void produce_joined(const ir::Operation& last);

  const Placement& placement_;
  const SharedPlan& plan_;
  RoleValues& values_;
  Tracer& tracer_;
  std::optional<NamedBarrier>* all_groups_ = nullptr;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::map<ir::ValueId, std::unique_ptr<Slot>> slots_;
  std::vector<ir::ValueId> read_;  // loads whose stages wait for a fence
};

}  // namespace tilewright::schedules
