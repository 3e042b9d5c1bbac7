#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "ir/ir.h"
#include "schedules/timeline.h"
#include "target/devices.h"
#include "target/target.h"

namespace tilewright::schedules {

// The time of a role's warps, which are in step: each scheduler issues for one of every warpgroup.
// And for how long they keep the units of their multiprocessor busy, which all warps of a CTA add
// to `total`. In cycles.
class WarpClock {
 public:
  WarpClock(const ir::Kernel& kernel, const target::Device& device, CtaTimeline& total);

  double now() const;
  // Of its latencies, those that nothing hides.
  double exposed() const { return own_.exposed; }
  // CtaTimeline::pauses, with what comes behind the last product.
  double pauses() const;
  double stages() const { return own_.stages; }
  double product_waits() const { return own_.product_waits; }
  // Of so many warps, which are in step: whole warpgroups, or fewer.
  void set_warps(std::int64_t warps);
  // At least one.
  double groups() const { return groups_; }

  void spend(double cycles) { own_.now += groups_ * cycles; }
  void wait(double cycles);
  // One instruction that waits for the one before it.
  void scalar_step();
  // One that another unit executes.
  void issue();
  // So many bytes come from global memory to registers, or go there, of each warpgroup.
  void load_global(double bytes);
  void store_global(double bytes);
  void need_loads();
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

  void commit_stores() { stores_in_flight_.push_back(own_.now); }
  void commit_products() { groups_in_flight_.push_back(own_.free); }
  // For one of so many stages of a ring.
  void wait_for_stage(std::int64_t stages) { own_.stages += 1.0 / static_cast<double>(stages); }
  // For products of another role.
  void wait_for_others() { own_.free = std::max(own_.free, own_.now); }
  // Until shared memory has been read, or all is in global memory.
  void wait_for_stores(std::int64_t in_flight, bool read);
  void wait_for_products(std::int64_t in_flight);

  // Around a loop, and whether it has none inside: the answer is for the end.
  bool begin_loop(bool is_innermost);
  void end_loop(bool before);

  // Behind a turn of a loop: how many products and how much arithmetic there had been before it.
  void end_turn(double products, double computed);
  double computed() const { return computed_; }
  // A barrier of so many threads.
  void meet(std::int64_t threads) {
    turn_meets_ = turn_meets_ || (in_turns_ && threads > limits_.group_threads());
  }

  struct Times {
    double now = 0, exposed = 0, pauses = 0, stages = 0, product_waits = 0;
    double free = 0;  // when the tensor cores have done what these warps issued
  };
  struct State {
    Times own;
    CtaTimeline total;
  };
  State state() const { return {own_, total_}; }
  // As much again as since `before`, so many times.
  void repeat(const State& before, double times);

 private:
  // While none of the role's products is under way, and the latencies among it.
  struct Pause {
    double cycles, exposed;
  };
  void note_pause();
  // What of it other warpgroups do not hide.
  double shown(const Pause& pause) const;
  struct UnitCycles {
    double arithmetic, special;
  };
  UnitCycles cycles_of(ir::Op function, ir::ValueId destination) const;
  // Of each of four schedulers.
  double scheduled() const { return groups_ * share_; }
  // A unit of each scheduler is busy.
  void use(double CtaTimeline::*unit, double cycles) {
    total_.*unit += scheduled() * cycles;
    computed_ += scheduled() * cycles;
  }

  const ir::Kernel& kernel_;
  const TargetLimits& limits_;
  const target::Rates& rates_;
  const target::Device::Reached& reached_;
  CtaTimeline& total_;
  std::deque<double> groups_in_flight_;  // when each will be complete
  std::deque<double> stores_in_flight_;  // when each was issued
  double groups_ = 1, share_ = 1;
  Times own_;
  double loaded_ = 0;                               // when what was asked for is in registers
  double exposed_before_ = 0;                       // at the last product
  std::vector<Pause> outside_;                      // of innermost loops
  double computed_ = 0;                             // cycles of arithmetic and of special functions
  bool turn_meets_ = false;                         // in a turn, at a barrier of several warpgroups
  double turn_computes_ = 0, turn_multiplies_ = 0;  // the last turn of an innermost loop
  bool in_turns_ = false;                           // of an innermost loop,
  bool has_multiplied_ = false;                     // behind its first product
};

}  // namespace tilewright::schedules
