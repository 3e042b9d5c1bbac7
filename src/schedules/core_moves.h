#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/access_bounds.h"
#include "schedules/core_plan.h"
#include "schedules/retracing.h"

namespace tilewright::schedules {

// Records the rings and moves of a plan, of the sequencer whose role is being traced.
class CoreMoves : public CorePlan {
 public:
  explicit CoreMoves(Recording& values)
      : CorePlan(values.tile()),
        integers_(values.tile()),
        values_(values),
        kernel_(values.kernel()),
        tracer_(values.tracer()) {}

 protected:
  bool own(const std::string& unit) const;
  void declare();
  // Global memory of the kernel's own: a place for each stage of each core.
  Tensor scratch(const CoreStop& stop, SourceLocation where);
  void begin_role();
  void end_role();
  void begin_write(CoreStop& stop);
  void end_write(CoreStop& stop);
  void begin_read(CoreStop& stop);
  void end_read(CoreStop& stop);
  // What is before a load or a store of a tensor is over, where there are both.
  void order(const ir::Operation& o);
  std::string taker(const CoreRoute& route) const;
  // The value goes all of its way.
  void advance(CoreRoute& route);
  void step(CoreRoute& route, const target::CoreMove& move, bool turn, CoreStop* from,
            CoreStop* to);
  TensorView place(const CoreStop& stop, const Index& stage, const CoreStop& held, bool split);
  // Where what exists of the part ends. `named`: one that integers of the launch give as it is.
  Index limit(const ir::Operation& o, std::size_t first, std::size_t axis, bool named = false);
  Index start(const ir::Operation& o, std::size_t first, std::size_t axis, bool split);
  // What does not exist is 0, which a load itself leaves as it was.
  void zero_tail(const ir::Operation& load, const target::CoreMove& move, const CoreWindow& window,
                 bool split);
  // Between the window that is held and the part of a tensor that the operation names; of more axes
  // than the move has, one index of the first after the other.
  void transfer(const ir::Operation& o, const target::CoreMove& move, const CoreStop& held,
                const CoreWindow& window, bool turned, bool split);
  // Whether such pieces of a tile begin where windows may.
  void check_pieces(const ir::Operation& o, const CoreStop& held, bool turned, std::int64_t count,
                    int rows) const;
  // What of its tensor's axes integers of the launch decide.
  std::vector<analysis::AxisCheck> checks(const ir::Operation& o) const;
  const analysis::LoadedIntegers integers_;
  Recording& values_;
  Kernel& kernel_;
  Tracer& tracer_;
  std::string own_;
  std::optional<Index> instance_;
  // Of the loop that adds up: 0 where it has no turn, else 1; and loads that there have no place.
  std::optional<Index> turns_;
  std::set<const ir::Operation*> guarded_;
  struct HopEvents {
    CoreEvent there, back;
  };
  std::map<std::pair<std::string, std::string>, HopEvents> hop_events_;
};

}  // namespace tilewright::schedules
