#pragma once

#include <cstdint>
#include <deque>

#include "ir/ir.h"
#include "schedules/timeline.h"
#include "target/devices.h"
#include "target/target.h"

namespace tilewright::schedules {

// The time of one warp, or of a warpgroup's four in step, and for how long it keeps the units of
// its multiprocessor busy, which all warps of a CTA add to `total`. In cycles.
class WarpClock {
 public:
  WarpClock(const ir::Kernel& kernel, const target::Device& device, CtaTimeline& total);

  double now() const;
  // Of its latencies, those that nothing hides.
  double exposed() const { return exposed_; }
  // Of so many warps, which are in step: whole warpgroups, or fewer.
  void set_warps(std::int64_t warps);
  // At least one.
  double groups() const { return groups_; }

  void spend(double cycles) { now_ += cycles; }
  void wait(double cycles);
  // One instruction that waits for the one before it.
  void scalar_step();
  // One that another unit executes.
  void issue();
  // So many bytes of each warp go through shared memory, one after the other.
  void pass_shared(double bytes_of_warp);
  // By the arithmetic units of each thread.
  void calculate(double cycles);
  // One instruction an element.
  void apply(ir::Op function, double count, ir::ValueId destination);
  // A register of each lane is a column.
  void access_tensor_memory(const ir::Operation& operation);
  // One warpgroup's product: as fast as the tensor cores, or as shared memory feeds them.
  void product(const ir::Operation& operation);

  void commit_stores() { stores_in_flight_.push_back(now_); }
  void commit_products() { groups_in_flight_.push_back(free_); }
  // Until shared memory has been read, or all is in global memory.
  void wait_for_stores(std::int64_t in_flight, bool read);
  void wait_for_products(std::int64_t in_flight);

  struct State {
    double now, exposed, free;
    CtaTimeline total;
  };
  State state() const { return {now_, exposed_, free_, total_}; }
  // As much again as since `before`, so many times.
  void repeat(const State& before, double times);

 private:
  struct UnitCycles {
    double arithmetic, special;
  };
  UnitCycles cycles_of(ir::Op function, ir::ValueId destination) const;
  // Of each of four schedulers.
  double scheduled() const { return groups_ * share_; }
  // A unit of each scheduler is busy.
  void use(double CtaTimeline::*unit, double cycles) { total_.*unit += scheduled() * cycles; }

  const ir::Kernel& kernel_;
  const TargetLimits& limits_;
  const target::Rates& rates_;
  const target::Device::Reached& reached_;
  CtaTimeline& total_;
  std::deque<double> groups_in_flight_;  // when each will be complete
  std::deque<double> stores_in_flight_;  // when each was issued
  double groups_ = 1, share_ = 1;
  double now_ = 0, exposed_ = 0, free_ = 0;  // free: when the tensor cores have done this warp's
};

}  // namespace tilewright::schedules
