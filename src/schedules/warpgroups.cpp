#include "schedules/warpgroups.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "schedules/group_exchange.h"
#include "schedules/products_in_flight.h"
#include "schedules/reload.h"
#include "schedules/tile_order.h"
#include "schedules/turns.h"
#include "support/diagnostic.h"
#include "tilewright/hopper.h"

namespace tilewright::schedules {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

using target::kGroupWarps;
constexpr std::int64_t kCopyBytes = 16;       // TMA writes no fewer
constexpr std::int64_t kEarlyElements = 256;  // of a row that each thread holds in part

// Records the kernel once more, at the explicit level.
class Retracing {
 public:
  Retracing(const ir::Kernel& tile, std::int64_t reserved)
      : tile_(tile),
        placement_(tile),
        plan_(placement_, reserved),
        turns_(placement_),
        kernel_(tile.name, tile.where),
        tracer_(Tracer::get("schedule", tile.where)),
        values_(tile_, placement_, tracer_),
        loads_(placement_, plan_, values_, tracer_),
        products_(placement_, plan_, values_, loads_, buffers_, tracer_),
        exchange_(placement_, plan_, values_, products_, buffers_, tracer_) {}

  ir::Kernel run() {
    declare();
    const TileOrder order(placement_);
    if (order.counted()) {
      next_tile_.emplace(kernel_.workspace("next_tile", 1, tile_.where));
      numbers_ =
          std::make_unique<Ring>(kernel_, "tile", stages(2), std::vector<TileShape>{}, tile_.where);
      numbers_->numbered(static_cast<int>(tile_.grid.size()));
    }
    const int groups = placement_.groups;
    const RoleRegisters share = role_registers(placement_.limits, groups);
    kernel_.roles({RoleSpec(
                       "load", warps(1), registers(share.loading),
                       [&](Index) { each_tile(order, true, Index(0)); }, tile_.where),
                   RoleSpec(
                       "math", warpgroups(groups), registers(share.computing),
                       [&](Index group) {
                         if (turn_) when(group == groups - 1, [&] { turn_->arrive(0); });
                         each_tile(order, false, group);
                         if (turn_) when(group == 0, [&] { turn_->sync(0); });
                         if (plan_.stages_stores()) bulk_wait(0, tile_.where);
                       },
                       tile_.where)},
                  tile_.where);
    return kernel_.finish();
  }

 private:
  void declare() {
    if (placement_.agrees) {
      answers_.emplace(kernel_, "answers", placement_.groups * kGroupWarps, tile_.where);
    }
    values_.declared(redeclare(tile_, kernel_));
    kernel_.ctas(multiprocessors(), 1, tile_.where);
    loads_.declare_rings(kernel_);
    for (const SharedPlan::Buffer& buffer : plan_.buffers()) {
      buffers_.push_back(SharedTile(kernel_, buffer.name + std::to_string(buffers_.size()),
                                    buffer.dtype, buffer.rows, buffer.columns, buffer.where));
    }
    if (plan_.exchanges() || placement_.memory.any_meet() || placement_.agrees) {
      all_groups_.emplace(kernel_, placement_.groups * target::kGroupThreads, 1, tile_.where);
    }
    if (turns_.any()) {
      turn_.emplace(kernel_, 2 * target::kGroupThreads, placement_.groups, tile_.where);
    }
    loads_.meet_at(all_groups_);
    exchange_.meet_at(all_groups_);
  }

  // The persistent loop over tiles: as many CTAs as multiprocessors. Tiles are dealt out
  // beforehand, or taken from a counter by the producer, which sends the place of each: the
  // divisions take their time. A first index of -1 ends the work.
  void each_tile(const TileOrder& order, bool loading, const Index& group) {
    values_.begin_role(loading, group);
    loads_.begin_role();
    const Tracer::At at(tracer_, tile_.where);
    if (!order.counted()) {
      const IndexOperand first(cta_index(), tile_.where);
      for (Index number : range(first, order.count(), cta_count())) {
        trace_tile(order.indices(number));
      }
      return;
    }
    const Dim tiles = order.count();
    Cell<Condition> more(true);
    if (loading) {
      Cell<Index> next(cta_index());
      repeat_while(more, [&] {
        const Index number = next;
        more = number < tiles;
        when(
            number < tiles,
            [&] {
              // One tile ahead, so that nobody waits for the counter. Each tile fetches once: the
              // last fetch of all sets the counter back for the next launch.
              const Index fetched = atomic_add((*next_tile_)(0), 1);
              when(fetched == tiles - 1, [&] { atomic_add((*next_tile_)(0), 0 - Index(tiles)); });
              next = fetched + cta_count();
              const std::vector<Index> indices = order.indices(number);
              numbers_->produce(std::vector<IndexOperand>(indices.begin(), indices.end()),
                                tile_.where);
              trace_tile(indices);
            },
            [&] {
              std::vector<IndexOperand> end(tile_.grid.size(), 0);
              end[0] = -1;
              numbers_->produce(end, tile_.where);
            });
      });
      return;
    }
    repeat_while(more, [&] {
      const Slot slot = numbers_->consume();
      std::vector<Index> indices;
      for (std::size_t i = 0; i < tile_.grid.size(); ++i) {
        indices.push_back(slot.number(static_cast<int>(i)));
      }
      numbers_->release(slot);
      const Condition valid = indices[0] >= 0;
      more = valid;
      when(valid, [&] { trace_tile(indices); });
    });
  }

  void trace_tile(const std::vector<Index>& indices) {
    values_.begin_tile(indices);
    visit(tile_.body);
  }

  void visit(const ir::Block& block) {
    std::map<const Operation*, std::vector<ValueId>> ends;
    for (const auto& [load, reader] : last_readers(block)) ends[reader].push_back(load);
    const std::size_t before = products_.count();
    const std::set<const Operation*> first = early_loads(block);
    for (const Operation& o : block.body) {
      if (first.count(&o) != 0) operation(o);
    }
    for (const Operation& o : block.body) {
      if (first.count(&o) != 0) continue;
      const Tracer::At at(tracer_, o.where, true);
      if (!values_.loading()) {
        products_.finish_for(o);
        const bool waits = o.op == Op::load || o.op == Op::dot || !o.blocks.empty();
        if (waits || o.op == Op::yield) loads_.release_read(o);
      }
      operation(o);
      if (values_.loading()) continue;
      for (const ValueId result : o.results) exchange_.put(result, o);
      for (const ValueId load : ends[&o]) {
        if (loads_.holds(load) && placement_.in_products(load)) products_.release_behind(load, o);
      }
    }
    products_.finish_from(before, block.body.back());
  }

  // Loads of rows straight into registers, with the addresses that they need: they come before
  // anything waits, so that nothing waits for them.
  std::set<const Operation*> early_loads(const ir::Block& block) const {
    std::set<const Operation*> result;
    std::set<ValueId> later;
    for (const Operation& o : block.body) {
      const bool in_order = std::none_of(o.operands.begin(), o.operands.end(),
                                         [&](ValueId v) { return later.count(v) != 0; });
      const bool row = o.op == Op::load && !placement_.in_ring(o) &&
                       tile_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in &&
                       tile_.type(o.results[0]).elements() <= kEarlyElements;
      const bool address = ir::info(o.op).pure() && !o.results.empty() &&
                           values_.scalar(o.results[0]) &&
                           std::all_of(o.operands.begin(), o.operands.end(),
                                       [&](ValueId v) { return values_.scalar(v); });
      if (in_order && (row || address)) {
        result.insert(&o);
      } else {
        later.insert(o.results.begin(), o.results.end());
      }
    }
    return result;
  }

  void operation(const Operation& o) {
    const Tracer::At at(tracer_, o.where, true);
    switch (o.op) {
      case Op::for_loop:
        return loop(o);
      case Op::if_then:
        return branch(o);
      case Op::while_loop:
        return repeat(o);
      case Op::load_index:
        return load_index(o);
      case Op::peer:
        return values_.peer(o);
      case Op::own_first:
      case Op::own_end:
        return own_row(o);
      case Op::yield:
      case Op::discard:
        return;
      case Op::transpose:
        if (!placement_.turned(o.results[0])) return;
        break;
      case Op::slice:
        if (placement_.for_products(o)) return;
        break;
      case Op::load:
        return loads_.load(o);
      default:
        break;
    }
    const auto is_tile = [&](ValueId v) { return tile_.type(v).is_tile(); };
    const bool tile = std::any_of(o.results.begin(), o.results.end(), is_tile) ||
                      std::any_of(o.operands.begin(), o.operands.end(), is_tile);
    if (values_.loading() && tile) return;
    if (placement_.crosses(o)) return exchange_.take(o);
    switch (o.op) {
      case Op::dot:
        return dot(o);
      case Op::store:
        return store(o);
      case Op::iota:
        return iota(o);
      case Op::any:
        return any(o);
      case Op::reduce:
        return reduce(o);
      case Op::reshape:
        if (values_.local(o.operands[0]).elements() == values_.local(o.results[0]).elements())
          break;
        unfit(o, "of a tile whose columns are spread over warpgroups", "use at most 256 columns");
      default:
        break;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : o.operands) {
      // A number that only tiles decide is the arithmetic's alone.
      if (values_.loading() && !values_.known(operand)) return;
      operands.push_back(values_[operand]);
    }
    values_[o.results[0]] =
        tracer_.emit(o.op, std::move(operands), values_.local(o.results[0]), o.attributes, o.where);
  }

  // Along an axis that warpgroups have parts of, they tell each other.
  void reduce(const Operation& o) {
    const ValueId operand = o.operands[0];
    const std::int64_t axis = o.attributes.integer(Key::axis);
    ir::Attributes attributes = o.attributes;
    if ((axis == 0 && placement_.divided(operand)) ||
        (axis == 1 && values_.spread_by_columns(tile_.type(operand)))) {
      attributes.set(Key::count, std::int64_t{placement_.groups});
    }
    values_[o.results[0]] = tracer_.emit(Op::reduce, {values_[operand]},
                                         values_.local(o.results[0]), attributes, o.where);
  }

  void dot(const Operation& o) {
    const bool in_turn = turns_.takes(o);
    if (in_turn) turn_->sync(values_.group());
    products_.issue(o);
    if (in_turn) turn_->arrive((values_.group() + 1) % placement_.groups);
  }

  // A tile that is transposed to be stored is so in registers: of rows that warpgroups have parts
  // of, each stores columns.
  void store_turned(const Operation& o) {
    const Operation& turn = *placement_.definitions[o.operands[1]];
    const bool divided = placement_.divided(turn.operands[0]);
    const auto put = [&] {
      Type type = values_.local(turn.operands[0]);
      std::swap(type.shape[0], type.shape[1]);
      const ValueId turned =
          tracer_.emit(Op::transpose, {values_[turn.operands[0]]}, type, turn.attributes, o.where);
      RoleValues::Part part;
      if (divided) {
        part.columns = kGroupRows;
        part.piece = values_.group();
      }
      tilewright::store(values_.view(o, 2, part), Tile(tracer_.handle(turned)), o.where);
    };
    if (divided || placement_.groups == 1) return put();
    when(values_.group() == 0, put, {}, o.where);
  }

  void store(const Operation& o) {
    const Operation* from = placement_.definitions[o.operands[1]];
    if (from && from->op == Op::transpose && !values_.known(o.operands[1])) return store_turned(o);
    const Type& type = tile_.type(o.operands[1]);
    const bool in_parts = placement_.by_columns() ? values_.spread_by_columns(type)
                                                  : placement_.has_rows(o.operands[1]);
    if (!in_parts && placement_.groups > 1) {
      // All warpgroups have it.
      return when(
          values_.group() == 0, [&] { store_own(o, false); }, {}, o.where);
    }
    store_own(o, values_.spread_by_columns(type));
  }

  // TMA writes whole 16 bytes: a row that ends inside of them is stored by the threads.
  void store_own(const Operation& o, bool by_columns) {
    const auto directly = [&] {
      tilewright::store(values_.view(o, 2, values_.own_part(o.operands[1])),
                        values_.tile(o.operands[1]), o.where);
    };
    const SharedPlan::Staging* plan = plan_.staging_of(o);
    if (!plan) return directly();
    const ir::Parameter& tensor = *tile_.parameter_of(o.operands[0]);
    const Dim& width = tensor.shape.back();
    const std::int64_t chunk = kCopyBytes / size_of(tensor.dtype);
    if (width.range().multiple % chunk == 0) return store_staged(o, *plan, by_columns);
    when(
        Index(width) % chunk == 0, [&] { store_staged(o, *plan, by_columns); }, directly, o.where);
  }

  void store_staged(const Operation& o, const SharedPlan::Staging& plan, bool by_columns) {
    for (int piece = 0; piece < plan.pieces; ++piece) {
      const SharedTile& buffer = buffers_[plan.buffers[piece % plan.buffers.size()]];
      bulk_wait_read(plan.in_flight, o.where);
      warp_sync(o.where);
      tilewright::store(buffer.rows(values_.group() * kGroupRows, kGroupRows),
                        columns(o.operands[1], piece * plan.columns, plan.columns, o), o.where);
      fence_proxy_async(o.where);
      warp_sync(o.where);
      // Each warp sends its own rows: it waits for no other.
      const Index place = by_columns ? values_.group() * plan.pieces + piece : Index(piece);
      tma_store(values_.view(o, 2, {true, true, plan.columns, place}),
                buffer.rows(values_.group() * kGroupRows + warp_index() * kWarpRows, kWarpRows),
                o.where);
      bulk_commit(o.where);
    }
  }

  // Some columns of a tile; of a converted one they are converted piece by piece.
  Tile columns(ValueId value, int first, int count, const Operation& o) {
    const Operation* made = placement_.definitions[value];
    if (!made || made->op != Op::cast || !values_.known(made->operands[0])) {
      return values_.tile(value).slice({0, first}, {kGroupRows, count}, o.where);
    }
    return values_.tile(made->operands[0])
        .slice({0, first}, {kGroupRows, count}, o.where)
        .cast(tile_.type(value).dtype, o.where);
  }

  void iota(const Operation& o) {
    const Type type = values_.local(o.results[0]);
    ValueId value = tracer_.emit(Op::iota, {}, type, o.attributes, o.where);
    if (o.attributes.integer(Key::axis) == 0 && placement_.has_rows(o.results[0])) {
      value = tracer_.emit(Op::add, {value, values_.id(values_.row_part() * kGroupRows)}, type, {},
                           o.where);
    }
    values_[o.results[0]] = value;
  }

  void own_row(const Operation& o) {
    const bool divided = !values_.loading() && !placement_.by_columns();
    const std::int64_t all = o.op == Op::own_first ? 0 : o.attributes.integer(Key::count);
    const int own = o.op == Op::own_first ? 0 : kGroupRows;
    values_[o.results[0]] =
        divided ? values_.id(values_.group() * kGroupRows + own)
                : tracer_.number(static_cast<double>(all), DType::i32, "own_row", o.where);
  }

  // Each warp knows of its own elements; what one has found, all have to know.
  void any(const Operation& o) {
    values_[o.results[0]] =
        tracer_.emit(Op::any, {values_[o.operands[0]]}, tile_.type(o.results[0]), {}, o.where);
    if (o.attributes.has(Key::partial)) return;
    const Condition own(tracer_.handle(values_[o.results[0]]));
    answers_->store(values_.group() * kGroupWarps + warp_index(), select(own, 1, 0), o.where);
    all_groups_->sync();
    Index found = 0;
    for (int warp = 0; warp < placement_.groups * kGroupWarps; ++warp) {
      found = max(found, answers_->load(warp, o.where));
    }
    values_[o.results[0]] = values_.id(found > 0);
    // Before the next answer takes the place of this one.
    all_groups_->sync();
  }

  // Carried values become cells; the producer carries scalars only.
  struct Carried {
    std::size_t position;
    int slot;
  };

  void loop(const Operation& o) {
    const auto is_scalar = [&](ValueId r) { return values_.scalar(r); };
    if (values_.loading() && !placement_.fills_rings(o.blocks[0])) {
      if (std::none_of(o.results.begin(), o.results.end(), is_scalar)) return;
      unfit(o, "computes a number", "compute it outside of the loop");
    }
    const ir::Block& body = o.blocks[0];
    std::vector<Carried> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (values_.loading() && !values_.scalar(o.results[i])) continue;
      cells.push_back({i, tracer_.open_cell(values_[o.operands[3 + i]], o.where)});
      products_.carried(body.body.back().operands[i], body.arguments[1 + i]);
    }
    values_[body.arguments[0]] = tracer_.open_loop(values_[o.operands[0]], values_[o.operands[1]],
                                                   values_[o.operands[2]], o.where);
    for (const Carried& c : cells) {
      values_[body.arguments[1 + c.position]] = tracer_.read(c.slot, o.where);
    }
    if (!values_.loading()) {
      for (const ValueId argument : body.arguments) exchange_.put(argument, o);
    }
    visit(body);
    std::vector<ValueId> yielded;
    for (const Carried& c : cells) {
      yielded.push_back(values_[body.body.back().operands[c.position]]);
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      tracer_.assign(cells[i].slot, yielded[i], o.where);
    }
    tracer_.close_loop();
    close(o, cells);
  }

  // A loop over scalars, which both roles run: a search, for instance.
  void repeat(const Operation& o) {
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
    const ir::Block& body = o.blocks[0];
    const std::vector<ValueId>& yielded = body.body.back().operands;
    const int condition = tracer_.open_cell(values_[o.operands[0]], o.where);
    std::vector<Carried> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      cells.push_back({i, tracer_.open_cell(values_[o.operands[1 + i]], o.where)});
    }
    tracer_.trace_while(
        condition,
        [&] {
          for (const Carried& c : cells) {
            values_[body.arguments[c.position]] = tracer_.read(c.slot, o.where);
          }
          visit(body);
          tracer_.assign(condition, values_[yielded[0]], o.where);
          for (const Carried& c : cells) {
            tracer_.assign(c.slot, values_[yielded[1 + c.position]], o.where);
          }
        },
        o.where);
    tracer_.close_cell(condition);
    close(o, cells);
  }

  void load_index(const Operation& o) {
    if (placement_.memory.stored(o)) {
      unfit(o,
            "an index of a tensor that the kernel stores to, which the loading warp would read "
            "at another time",
            "read it from a tensor that is not written");
    }
    std::vector<ValueId> operands{
        tracer_.use(values_.tensor(o.operands[0]).handle(), "load_index", o.where)};
    for (std::size_t i = 1; i < o.operands.size(); ++i) {
      operands.push_back(values_.id(values_.number(o, i)));
    }
    values_[o.results[0]] =
        tracer_.emit(Op::load_index, std::move(operands), tile_.type(o.results[0]), {}, o.where);
  }

  // Warps that decide for themselves may not wait for the others.
  void check_alone(const Operation& condition) const {
    for (const ir::Block& block : condition.blocks) {
      ir::for_each(block, [&](const Operation& o) {
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
    std::vector<Carried> cells;
    // A cell needs a value before the branches give it theirs.
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (values_.loading() && !values_.scalar(o.results[i])) continue;
      const Type type = values_.local(o.results[i]);
      const ValueId zero = tracer_.number(0, type.dtype, "if", o.where);
      cells.push_back(
          {i, tracer_.open_cell(
                  type.is_scalar() ? zero : tracer_.emit(Op::splat, {zero}, type, {}, o.where),
                  o.where)});
    }
    const auto run = [&](const ir::Block& block) {
      return [this, &block, &cells, &o] {
        visit(block);
        for (const Carried& c : cells) {
          tracer_.assign(c.slot, values_[block.body.back().operands[c.position]], o.where);
        }
      };
    };
    tracer_.trace_if(values_[o.operands[0]], run(o.blocks[0]), run(o.blocks[1]), o.where);
    close(o, cells);
  }

  void close(const Operation& o, const std::vector<Carried>& cells) {
    for (const Carried& c : cells) {
      values_[o.results[c.position]] = tracer_.read(c.slot, o.where);
      tracer_.close_cell(c.slot);
    }
  }

  const ir::Kernel& tile_;
  const Placement placement_;
  const SharedPlan plan_;
  const Turns turns_;
  Kernel kernel_;
  Tracer& tracer_;
  std::vector<SharedTile> buffers_;
  std::optional<NamedBarrier> all_groups_;
  std::optional<NamedBarrier> turn_;       // of each warpgroup
  std::optional<SharedIntegers> answers_;  // of each warp
  std::unique_ptr<Ring> numbers_;          // of tiles that are taken from a counter
  std::optional<Tensor> next_tile_;
  RoleValues values_;
  TileLoads loads_;
  ProductsInFlight products_;
  GroupExchange exchange_;
};

}  // namespace

ir::Kernel schedule_warpgroups(const ir::Kernel& tile, std::int64_t reserved) {
  return Retracing(reload(tile), reserved).run();
}

}  // namespace tilewright::schedules
