#include "schedules/warpgroups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/tile_registers.h"
#include "schedules/block_turns.h"
#include "schedules/declared_maps.h"
#include "schedules/group_exchange.h"
#include "schedules/products_in_flight.h"
#include "schedules/reload.h"
#include "schedules/tensor_products.h"
#include "schedules/tile_loop.h"
#include "schedules/tile_stores.h"
#include "schedules/turns.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

using target::kGroupWarps;
constexpr std::int64_t kEarlyElements = 256;  // of a row that each thread holds in part

// Two roles: one warp that loads, warpgroups that compute.
class LoadAndMath final : public Retracer {
 public:
  LoadAndMath(const Placement& placement, const SharedPlan& plan, RoleValues& values)
      : Retracer(values),
        placement_(placement),
        plan_(plan),
        turns_(placement_),
        block_turns_(tile_),
        values_(values),
        loads_(placement_, plan_, values_, tracer_),
        stores_(placement_, plan_, values_, buffers_),
        products_(placement.in_tensor_memory() ? make<ProductsInTensorMemory>()
                                               : make<ProductsInFlight>()),
        exchange_(placement_, plan_, values_, *products_, buffers_, tracer_) {}

  ir::Kernel run() {
    declare();
    TileLoop& tiles = tiles_.emplace(placement_, values_, block_turns_.any());
    const auto each_tile = [&](bool loading, const Index& group) {
      values_.begin_role(loading, group);
      loads_.begin_role();
      if (!loading) products_->begin_role(all_warps_);
      tiles.each([&](const std::vector<Index>& indices) {
        values_.begin_block(indices);
        visit(tile_.body);
      });
      if (!loading) products_->end_role(all_warps_);
    };
    const int groups = placement_.groups;
    const RoleRegisters share = role_registers(placement_.limits, groups, placement_.ctas);
    kernel_.roles({RoleSpec(
                       "load", warps(1), registers(share.loading),
                       [&](Index) { each_tile(true, Index(0)); }, tile_.where),
                   RoleSpec(
                       "math", warpgroups(groups), registers(share.computing),
                       [&](Index group) {
                         if (turn_) when(group == groups - 1, [&] { turn_->arrive(0); });
                         each_tile(false, group);
                         if (turn_) when(group == 0, [&] { turn_->sync(0); });
                         if (plan_.stages_stores()) bulk_wait(0, tile_.where);
                       },
                       tile_.where)},
                  tile_.where);
    return kernel_.finish();
  }

 private:
  template <typename Kind>
  std::unique_ptr<Products> make() {
    return std::make_unique<Kind>(placement_, plan_, values_, loads_, buffers_, tracer_);
  }

  void declare() {
    if (placement_.agrees) {
      answers_.emplace(kernel_, "answers", placement_.groups * kGroupWarps, tile_.where);
    }
    values_.declare();
    kernel_.ctas(multiprocessors() * placement_.ctas, 1, tile_.where);
    loads_.declare_rings(kernel_);
    for (const SharedPlan::Buffer& buffer : plan_.buffers()) {
      buffers_.push_back(SharedTile(kernel_, buffer.name + std::to_string(buffers_.size()),
                                    buffer.dtype, buffer.rows, buffer.columns, buffer.where));
    }
    const bool meets = products_->declare();
    if (meets || plan_.exchanges() || placement_.memory.any_meet() || placement_.agrees ||
        block_turns_.any()) {
      all_warps_.emplace(kernel_, placement_.groups * target::kGroupThreads, 1, tile_.where);
    }
    block_turns_.declare(kernel_, tile_.where);
    if (turns_.any()) {
      turn_.emplace(kernel_, 2 * target::kGroupThreads, placement_.groups, tile_.where);
    }
    loads_.meet_at(all_warps_);
    exchange_.meet_at(all_warps_);
  }

  void visit(const ir::Block& block) override {
    std::map<const Operation*, std::vector<ValueId>> ends;
    for (const auto& [load, reader] : last_readers(block)) ends[reader].push_back(load);
    const std::size_t before = products_->count();
    const std::vector<ValueId> begin = rows_that_begin(block);
    const bool rows_lead =
        !placement_.in_tensor_memory() && analysis::rows_fit(tile_, block, begin);
    const std::vector<bool> first = early(block, [&](const Operation& o) {
      return may_lead(o) || (rows_lead && is_row_before(block, o));
    });
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i]) operation(block.body[i]);
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Operation& o = block.body[i];
      if (first[i]) continue;
      const Tracer::At at(tracer_, o.where, true);
      if (!values_.loading()) {
        products_->finish_for(o);
        const bool waits = o.op == Op::load || o.op == Op::dot || !o.blocks.empty();
        if (waits || o.op == Op::yield) loads_.release_read(o);
        if (block_turns_.begin_at(o)) block_turns_.wait(tiles_->number(), o.where);
      }
      operation(o);
      if (values_.loading()) continue;
      if (block_turns_.end_at(o)) end_turn(o);
      for (const ValueId result : o.results) exchange_.put(result, o);
      for (const ValueId load : ends[&o]) {
        const bool in_registers = placement_.in_registers(load) && !placement_.in_products(load);
        if (loads_.holds(load) && !in_registers) products_->release_behind(load, o);
      }
    }
    products_->finish_from(before, block.body.back());
  }

  void end_turn(const Operation& o) {
    all_warps_->sync();
    when(
        values_.group() * kGroupWarps + warp_index() == 0,
        [&] { block_turns_.pass_on(tiles_->number(), Index(tiles_->count()), o.where); }, {},
        o.where);
  }

  void add(const Operation& o) {
    if (o.attributes.has(Key::ordered) && block_turns_.adds_again()) all_warps_->sync();
    stores_.store(o);
  }

  // Loads of rows straight into registers, with the addresses that they need: they come before
  // anything waits, so that nothing waits for them.
  bool may_lead(const Operation& o) const {
    if (o.op == Op::load) {
      return !placement_.in_ring(o) &&
             tile_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in &&
             tile_.type(o.results[0]).elements() <= kEarlyElements;
    }
    return ir::info(o.op).pure() && !o.results.empty() && values_.scalar(o.results[0]) &&
           std::all_of(o.operands.begin(), o.operands.end(),
                       [&](ValueId v) { return values_.scalar(v); });
  }

  // Of what a block computes: what the sum of one of its products begins with.
  static bool begins(const ir::Block& block, const Operation& o) {
    return ir::info(o.op).elementwise() &&
           std::any_of(block.body.begin(), block.body.end(), [&](const Operation& reader) {
             return reader.op == Op::dot && reader.operands.size() > 2 &&
                    reader.operands[2] == o.results[0];
           });
  }

  // Of the values that the block loads those that no more than that is computed from.
  static std::vector<ValueId> rows_that_begin(const ir::Block& block) {
    std::vector<ValueId> rows;
    for (const Operation& load : block.body) {
      if (load.op != Op::load) continue;
      const bool all =
          std::all_of(block.body.begin(), block.body.end(), [&](const Operation& reader) {
            const auto& read = reader.operands;
            return std::count(read.begin(), read.end(), load.results[0]) == 0 ||
                   begins(block, reader);
          });
      if (all) rows.push_back(load.results[0]);
    }
    return rows;
  }

  // Rows of numbers from shared memory, and what sums begin with of them: beside products that read
  // both operands there, loads are starved.
  bool is_row_before(const ir::Block& block, const Operation& o) const {
    return (o.op == Op::load && placement_.row_in_ring(o)) || begins(block, o);
  }

  void operation(const Operation& o) {
    const Tracer::At at(tracer_, o.where, true);
    switch (ir::info(o.op).family) {
      case ir::Family::control:
        return control(o);
      case ir::Family::word:
        return load_index(o);
      case ir::Family::peer:
        return values_.peer(o);
      case ir::Family::own_rows:
        return own_rows(o);
      case ir::Family::tile_access:
        return o.op == Op::load ? loads_.load(o) : computed(o);
      case ir::Family::tile:
        if (o.op == Op::transpose && !placement_.turned(o.results[0])) return;
        if (o.op == Op::slice && placement_.for_products(o)) return;
        return computed(o);
      case ir::Family::function:
      case ir::Family::constant:
      case ir::Family::position:
      case ir::Family::tile_product:
        return computed(o);
      case ir::Family::place:  // the others are of the forms behind
      case ir::Family::map_choice:
      case ir::Family::tile_copy:
      case ir::Family::pending:
      case ir::Family::view:
      case ir::Family::shared_tile:
      case ir::Family::fragment_tile:
      case ir::Family::prefetch:
      case ir::Family::array:
      case ir::Family::computation:
      case ir::Family::global_access:
      case ir::Family::matrix_access:
      case ir::Family::element_access:
      case ir::Family::fragment_access:
      case ir::Family::shared_word:
      case ir::Family::word_wait:
      case ir::Family::mbarrier:
      case ir::Family::named_barrier:
      case ir::Family::cta_barrier:
      case ir::Family::cluster_barrier:
      case ir::Family::fence:
      case ir::Family::lane_order:
      case ir::Family::commit:
      case ir::Family::group_wait:
      case ir::Family::bulk_copy:
      case ir::Family::product:
      case ir::Family::product_fence:
      case ir::Family::tensor_tile:
      case ir::Family::tensor_tile_product:
      case ir::Family::tensor_allocation:
      case ir::Family::tensor_access:
      case ir::Family::tensor_wait:
      case ir::Family::tensor_product:
      case ir::Family::tensor_copy:
      case ir::Family::tensor_commit:
      case ir::Family::tensor_fence:
      case ir::Family::launch_control:
      case ir::Family::check:
      case ir::Family::register_budget:
      case ir::Family::core_memory:
      case ir::Family::core_window:
      case ir::Family::core_copy:
      case ir::Family::core_compute:
      case ir::Family::core_event:
        return;
    }
  }

  void control(const Operation& o) {
    switch (ir::as<ir::ControlOp>(o.op)) {
      case ir::ControlOp::for_loop:
        return loop(o);
      case ir::ControlOp::if_then:
        return branch(o);
      case ir::ControlOp::while_loop:
        return search(o);
      case ir::ControlOp::yield:
      case ir::ControlOp::role:  // these two are of the scheduled form
      case ir::ControlOp::elect:
        return;
    }
  }

  void own_rows(const Operation& o) {
    switch (ir::as<ir::OwnRowsOp>(o.op)) {
      case ir::OwnRowsOp::own_first:
      case ir::OwnRowsOp::own_end:
        return own_row(o);
      case ir::OwnRowsOp::discard:
        return;
    }
  }

  // What computes, and stores, of the arithmetic's roles.
  void computed(const Operation& o) {
    const auto is_tile = [&](ValueId v) { return tile_.type(v).is_tile(); };
    const bool has_tiles = std::any_of(o.results.begin(), o.results.end(), is_tile) ||
                           std::any_of(o.operands.begin(), o.operands.end(), is_tile);
    if (values_.loading() && has_tiles) return;
    if (placement_.crosses(o)) return exchange_.take(o);
    if (o.op == Op::dot) return dot(o);
    if (o.op == Op::store) return stores_.store(o);
    if (o.op == Op::red_tile) return add(o);
    if (ir::info(o.op).family == ir::Family::tile) return tile(o);
    again(o);
  }

  void tile(const Operation& o) {
    switch (ir::as<ir::TileOp>(o.op)) {
      case ir::TileOp::iota:
        return iota(o);
      case ir::TileOp::any:
        if (o.attributes.has(Key::partial)) return repeat(o, {});
        return any(o, values_.group(), placement_.groups * kGroupWarps);
      case ir::TileOp::reduce:
        return reduce(o);
      case ir::TileOp::reshape:
        if (values_.local(o.operands[0]).elements() != values_.local(o.results[0]).elements()) {
          placement_.unfit_for_columns(o, "of a tile whose columns are spread over warpgroups",
                                       "use at most 256 columns");
        }
        return again(o);
      case ir::TileOp::splat:
      case ir::TileOp::transpose:
      case ir::TileOp::slice:
        return again(o);
      case ir::TileOp::convert:
        return declared(o);
      case ir::TileOp::complete:  // of the scheduled form
        return;
    }
  }

  // The same operation on what its operands have become.
  void again(const Operation& o) {
    // A number that only tiles decide is the arithmetic's alone.
    const auto known = [&](ValueId v) { return values_.known(v); };
    if (values_.loading() && !std::all_of(o.operands.begin(), o.operands.end(), known)) return;
    repeat(o, o.attributes);
  }

  // The tile lies as the author says, each warpgroup's part of it in that warpgroup.
  void declared(const Operation& o) {
    const Type local = values_.local(o.results[0]);
    const ValueId result = o.results[0];
    const int groups =
        placement_.divided(result) ? placement_.row_parts(result) : placement_.groups;
    repeat(o, {{Key::layout, declared_for_group(tile_, o, local, groups)}});
  }

  // Along an axis that warpgroups have parts of, they tell each other.
  void reduce(const Operation& o) {
    const ValueId operand = o.operands[0];
    const std::int64_t axis = o.attributes.integer(Key::axis);
    ir::Attributes attributes = o.attributes;
    const bool along_rows = axis == 0 && placement_.divided(operand);
    if (along_rows && placement_.owners(operand) < placement_.groups) placement_.unfit_for_rows(o);
    if (along_rows || (axis == 1 && placement_.column_parts(operand) > 1)) {
      attributes.set(Key::count, std::int64_t{placement_.groups});
    }
    repeat(o, attributes);
  }

  void dot(const Operation& o) {
    const bool in_turn = turns_.takes(o);
    if (in_turn) turn_->sync(values_.group());
    products_->issue(o);
    if (in_turn) turn_->arrive((values_.group() + 1) % placement_.groups);
  }

  void iota(const Operation& o) {
    const Type type = values_.local(o.results[0]);
    ValueId value = tracer_.emit(Op::iota, {}, type, o.attributes, o.where);
    if (o.attributes.integer(Key::axis) == 0 && placement_.has_rows(o.results[0])) {
      value = tracer_.emit(
          Op::add, {value, values_.id(values_.row_part(o.results[0]) * placement_.group_rows)},
          type, {}, o.where);
    }
    values_[o.results[0]] = value;
  }

  void own_row(const Operation& o) {
    const bool divided = !values_.loading() && !placement_.by_columns();
    const std::int64_t all = o.op == Op::own_first ? 0 : o.attributes.integer(Key::count);
    const int own = o.op == Op::own_first ? 0 : placement_.group_rows;
    values_[o.results[0]] =
        divided ? values_.id(values_.group() * placement_.group_rows + own)
                : tracer_.number(static_cast<double>(all), DType::i32, "own_row", o.where);
  }

  // The producer carries scalars only.
  bool carries(ValueId result) const override {
    return values_.loading() ? values_.scalar(result) : products_->in_registers(result);
  }

  void enter(const Operation& loop) override {
    if (values_.loading()) return;
    for (const ValueId argument : loop.blocks[0].arguments) exchange_.put(argument, loop);
  }

  void loop(const Operation& o) {
    const ir::Block& body = o.blocks[0];
    if (values_.loading() && !placement_.fills_rings(body)) {
      const auto is_scalar = [&](ValueId r) { return values_.scalar(r); };
      if (std::none_of(o.results.begin(), o.results.end(), is_scalar)) return;
      unfit(o, "computes a number", "compute it outside of the loop");
    }
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (carries(o.results[i])) {
        products_->carried(body.body.back().operands[i], body.arguments[1 + i]);
      }
    }
    if (values_.loading()) return for_loop(o);
    products_->enter(o);
    for_loop(o);
    products_->leave(o);
  }

  // A loop over scalars, which both roles run: a search, for instance.
  void search(const Operation& o) {
    for (const ValueId result : o.results) {
      if (!values_.scalar(result)) {
        unfit(o,
              "it assigns a tile, " + tile_.type(result).to_string() +
                  ", and the kernel decides when it ends",
              "loop over a range, and take a tile's turns with when(...)");
      }
    }
    if (placement_.fills_rings(o.blocks[0])) {
      unfit(o, "it loads what products read, and the kernel decides when it ends",
            "loop over a range, or load before it");
    }
    while_loop(o);
  }

  void load_index(const Operation& o) {
    if (placement_.memory.stored(o)) {
      unfit(o,
            "an index of a tensor that the kernel stores to, which the loading warp would read "
            "at another time",
            "read it from a tensor that is not written");
    }
    for (std::size_t i = 1; i < o.operands.size(); ++i) (void)values_.number(o, i);
    repeat(o, o.attributes);
  }

  // Warps that decide for themselves may not wait for the others.
  void check_alone(const Operation& condition) const {
    for (const ir::Block& block : condition.blocks) {
      ir::for_each(block, [&](const Operation& o) {
        if (o.op == Op::red_tile && o.attributes.has(Key::ordered)) {
          unfit(o, "which adds in order, in a condition that each warp decides",
                "ask any(...), which all of a block of the grid decides alike");
        }
        if (o.op == Op::dot) {
          unfit(o, "in a condition that each warp decides",
                "ask any(...), which all of a block of the grid decides alike");
        }
        for (const ValueId result : o.results) {
          if (!placement_.exchanged(result)) continue;
          unfit(o,
                tile_.type(result).to_string() +
                    ", which warpgroups pass to each other, in a condition that each warp decides",
                "ask any(...), which all of a block of the grid decides alike");
        }
      });
    }
  }

  void branch(const Operation& o) {
    if (values_.loading() && !values_.known(o.operands[0])) {
      for (const ir::Block& inner : o.blocks) {
        if (placement_.fills_rings(inner)) {
          unfit(o, "a condition that is computed decides what is loaded",
                "load in either case, or decide by indices");
        }
      }
      return;
    }
    if (placement_.nearby(o.operands[0])) check_alone(o);
    if_then(o);
    if (!values_.loading()) products_->leave(o);
  }

  const Placement& placement_;
  const SharedPlan& plan_;
  const Turns turns_;
  BlockTurns block_turns_;
  RoleValues& values_;
  std::vector<SharedTile> buffers_;
  std::optional<NamedBarrier> turn_;  // of each warpgroup
  std::optional<TileLoop> tiles_;
  TileLoads loads_;
  TileStores stores_;
  const std::unique_ptr<Products> products_;
  GroupExchange exchange_;
};

}  // namespace

Scheduled schedule_warpgroups(const ir::Kernel& kernel, std::int64_t reserved) {
  const ir::Kernel tile = reload(kernel);
  // What does not fit is said before another kernel is begun.
  const Placement placement(tile);
  const SharedPlan plan(placement, reserved);
  RoleValues values(placement);
  Scheduled made{LoadAndMath(placement, plan, values).run(), {}};
  made.kernel.resident = placement.ctas;
  const Schedule& stated = kernel.schedule;
  made.fields = {
      chosen("stages", stated.stages, plan.stages_text()),
      chosen("warpgroups", stated.warpgroups, std::to_string(placement.groups)),
      chosen("partition", stated.partition, placement.partition_text()),
      chosen("ctas", stated.ctas, std::to_string(placement.ctas)),
  };
  return made;
}

}  // namespace tilewright::schedules
