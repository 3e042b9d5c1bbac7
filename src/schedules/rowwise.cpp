#include "schedules/rowwise.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "language/explicit_tracing.h"
#include "schedules/block_turns.h"
#include "schedules/declared_maps.h"
#include "schedules/memory_order.h"
#include "schedules/retracing.h"
#include "schedules/row_spread.h"
#include "target/target.h"
#include "target/warpgroups.h"
#include "tilewright/asynchronous.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

constexpr std::int64_t kLoadedRegisters = 64;  // a thread, filled by loads ahead of their use

// One role, each of whose warps has its part of every tile.
class RowRetracing final : public Retracer {
 public:
  RowRetracing(const RowSpread& spread, Recording& values)
      : Retracer(values),
        spread_(spread),
        memory_(tile_),
        declares_(declares_maps(tile_)),
        turns_(tile_),
        values_(values) {}

  ir::Kernel run() {
    declare();
    kernel_.roles({RoleSpec(
                      "rows", warps(spread_.warps()), registers(spread_.registers()),
                      [this](Index group) {
                        group_.emplace(group);
                        retrace();
                      },
                      tile_.where)},
                  tile_.where);
    ir::Kernel scheduled = kernel_.finish();
    // Tiles are told how to lie where they begin; the others follow from their operands, or all
    // from those that the author says it of. A constant that is smaller than the largest tile may
    // begin a sum of which each lane keeps its part.
    ir::for_each(scheduled.body, [&](Operation& o) {
      if (o.op == Op::role) o.attributes.set(Key::threads, std::int64_t{32 * spread_.warps()});
      if (declares_ || (o.op != Op::load && o.op != Op::iota && o.op != Op::splat)) return;
      const std::vector<std::int64_t>& shape = scheduled.type(o.results[0]).shape;
      if (o.op == Op::splat && shape != spread_.largest()) return;
      const ir::RegisterLayout layout = spread_.layout(shape);
      if (!layout.lanes.empty()) o.attributes.set(Key::layout, layout);
    });
    return scheduled;
  }

 private:
  void declare() {
    values_.declare();
    bool asks = false;
    ir::for_each(tile_.body, [&](const Operation& o) { asks |= o.op == Op::any; });
    if (asks) answers_.emplace(kernel_, "answers", spread_.warps(), tile_.where);
    if (memory_.any_meet() || asks || turns_.any())
      all_warps_.emplace(kernel_, 32 * spread_.warps(), 1, tile_.where);
    turns_.declare(kernel_, tile_.where);
    const Dim at_once = multiprocessors() * tile_.schedule.ctas.value_or(1);
    kernel_.ctas(turns_.any() ? at_once : blocks_of(tile_.grid), 1, tile_.where);
  }

  void retrace() {
    const Tracer::At at(tracer_, tile_.where);
    if (!turns_.any()) return retrace(cta_index());
    // Blocks that wait for each other: only as many CTAs as run at once.
    const IndexOperand first(cta_index(), tile_.where);
    for (Index number : range(first, blocks_of(tile_.grid), cta_count())) retrace(number);
  }
  void retrace(const Index& number) {
    number_.emplace(number);
    values_.begin_block(indices_of(tile_.grid, number));
    visit(tile_.body);
  }

  // Loads come first, with the addresses they need: reductions, at which warps wait for each other,
  // would else stand between one load and the next. Unless they took too many registers.
  void visit(const ir::Block& block) override {
    const bool few = spread_.loaded_registers(tile_, block) <= kLoadedRegisters;
    const std::vector<bool> first =
        early(block, [&](const Operation& o) { return few && reads_constants(o); });
    for (const bool now : {true, false}) {
      for (std::size_t i = 0; i < first.size(); ++i) {
        if (first[i] != now) continue;
        const Operation& o = block.body[i];
        if (turns_.begin_at(o)) turns_.wait(*number_, o.where);
        operation(o);
        if (turns_.end_at(o)) end_turn(o);
      }
    }
  }

  void end_turn(const Operation& o) {
    const Tracer::At at(tracer_, o.where, true);
    all_warps_->sync();
    when(
        *group_ * target::kGroupWarps + warp_index() == 0,
        [&] { turns_.pass_on(*number_, Index(blocks_of(tile_.grid)), o.where); }, {}, o.where);
  }

  void add(const Operation& o) {
    const bool ordered = o.attributes.has(Key::ordered);
    if (ordered && turns_.adds_again()) all_warps_->sync();
    atomic_add(values_.view(o, 2), values_.tile(o.operands[1]),
               ordered ? Order::blocks : Order::any, o.where);
  }

  bool loads_input(const Operation& o) const {
    return o.op == Op::load && tile_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in;
  }
  // Reads what never changes, or computes a number of such.
  bool reads_constants(const Operation& o) const {
    return loads_input(o) || (ir::info(o.op).pure() && tile_.type(o.results[0]).is_scalar());
  }

  void operation(const Operation& o) {
    const Tracer::At at(tracer_, o.where, true);
    if (ir::info(o.op).family == ir::Family::control) return control(o);
    if (o.op == Op::any) return any(o, *group_, spread_.warps());
    if (o.op == Op::peer) return values_.peer(o);
    if (o.op == Op::store) {
      return tilewright::store(values_.view(o, 2), values_.tile(o.operands[1]), o.where);
    }
    if (o.op == Op::red_tile) return add(o);
    if (is_declared(o)) {
      return repeat(o, {{Key::layout, declared_for_cta(tile_, o, spread_.warps())}});
    }
    const bool reads = o.op == Op::load || o.op == Op::load_index;
    if (reads && memory_.after_store(o)) all_warps_->sync();
    repeat(o, o.attributes);
    if (reads && memory_.stored(o) && !keeps_to_itself(o)) all_warps_->sync();
  }

  void control(const Operation& o) {
    switch (ir::as<ir::ControlOp>(o.op)) {
      case ir::ControlOp::for_loop:
        return for_loop(o);
      case ir::ControlOp::if_then:
        return if_then(o);
      case ir::ControlOp::while_loop:
        return while_loop(o);
      case ir::ControlOp::yield:
      case ir::ControlOp::role:  // these two are of the scheduled form
      case ir::ControlOp::elect:
        return;
    }
  }

  // Whether each element is read and written by one thread alone.
  bool keeps_to_itself(const Operation& load) const {
    const std::vector<std::int64_t>& shape = tile_.type(load.results[0]).shape;
    if (declares_ || load.op != Op::load || memory_.after_store(load) ||
        memory_.stored_elsewhere(load) || shape != spread_.largest()) {
      return false;
    }
    const ir::RegisterLayout layout = spread_.layout(shape);
    const auto alone = [](const std::vector<ir::Mode>& modes) {
      return std::none_of(modes.begin(), modes.end(), [](const ir::Mode& mode) {
        return mode.kind == ir::ModeKind::replicate && mode.size > 1;
      });
    };
    return alone(layout.lanes) && alone(layout.warps);
  }

  const RowSpread& spread_;
  const MemoryOrder memory_;
  const bool declares_;  // whether the author says of tiles how they lie
  BlockTurns turns_;
  Recording& values_;
  std::optional<Index> group_;   // warpgroup
  std::optional<Index> number_;  // of the block of the grid
};

}  // namespace

Scheduled schedule_rowwise(const ir::Kernel& tile) {
  if (tile.schedule.stages.is_set()) {
    refused("stages", tile.schedule.stages,
            "\"" + tile.name + "\" has no products, and its loads go straight to registers")
        .fix("leave it out")
        .raise();
  }
  // What does not fit is said before another kernel is begun.
  const RowSpread spread(tile);
  Recording values(tile);
  Scheduled made{RowRetracing(spread, values).run(), {}};
  const Schedule& stated = tile.schedule;
  const bool columns = spread.by_columns();
  const TargetLimits& limits = target::target_of(tile).limits;
  const std::int64_t resident =
      limits.registers / (limits.lanes * spread.warps() * spread.registers());
  made.fields = {
      chosen("stages", stated.stages, "none: loads go straight to registers"),
      chosen("warpgroups", stated.warpgroups, std::to_string(spread.warps() / target::kGroupWarps)),
      chosen("partition", stated.partition,
             ir::value_text(columns ? Partition::columns : Partition::rows)),
      chosen("ctas", stated.ctas, std::to_string(resident)),
  };
  return made;
}

}  // namespace tilewright::schedules
