#include "schedules/hopper.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "analysis/extents.h"
#include "language/explicit_tracing.h"
#include "schedules/placement.h"
#include "schedules/retracing.h"
#include "schedules/shared_plan.h"
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

constexpr int kGroupWarps = 4;
constexpr int kWarpRows = 16;  // of a warpgroup's 64
constexpr int kGroupThreads = 128;
constexpr std::int64_t kEarlyElements = 256;  // of a row that each thread holds in part

// Records the kernel once more, at the explicit level.
class Retracing {
 public:
  explicit Retracing(const ir::Kernel& tile)
      : tile_(tile),
        placement_(tile),
        extents_(tile),
        plan_(placement_, extents_),
        turns_(placement_),
        kernel_(tile.name, tile.where),
        tracer_(Tracer::get("schedule", tile.where)) {}

  ir::Kernel run() {
    declare();
    const TileOrder order(placement_);
    if (order.uneven()) {
      next_tile_.emplace(kernel_.workspace("next_tile", 1, tile_.where));
      numbers_ =
          std::make_unique<Ring>(kernel_, "tile", stages(2), std::vector<TileShape>{}, tile_.where);
      numbers_->numbered();
    }
    const int groups = placement_.groups;
    kernel_.roles({RoleSpec(
                       "load", warps(1), registers(groups > 2 ? 32 : 24),
                       [&](Index) { each_tile(order, true, Index(0)); }, tile_.where),
                   RoleSpec(
                       "math", warpgroups(groups), registers(groups > 2 ? 160 : 240),
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
    parameters_ = redeclare(tile_, kernel_);
    kernel_.ctas(multiprocessors(), 1, tile_.where);
    for (const SharedPlan::RingPlan& ring : plan_.rings()) {
      rings_.push_back(std::make_unique<Ring>(
          kernel_, ring.name, stages(ring.stages),
          std::vector<TileShape>{{ring.dtype, ring.rows, ring.columns}}, ring.where));
    }
    for (const SharedPlan::Buffer& buffer : plan_.buffers()) {
      buffers_.push_back(SharedTile(kernel_, buffer.name + std::to_string(buffers_.size()),
                                    buffer.dtype, buffer.rows, buffer.columns, buffer.where));
    }
    if (plan_.exchanges() || placement_.memory.any_meet() || placement_.agrees) {
      all_groups_.emplace(kernel_, placement_.groups * kGroupThreads, 1, tile_.where);
    }
    if (turns_.any()) {
      turn_.emplace(kernel_, 2 * kGroupThreads, placement_.groups, tile_.where);
    }
  }

  // The persistent loop over tiles: as many CTAs as multiprocessors. Tiles of the same length are
  // dealt out beforehand, others from a counter by the producer.
  void each_tile(const TileOrder& order, bool loading, const Index& group) {
    loading_ = loading;
    slots_.clear();
    group_ = tracer_.use(group.handle(), "schedule", tile_.where);
    const Tracer::At at(tracer_, tile_.where);
    const auto body = [&](const Index& number) { trace_tile(order, number); };
    if (!order.uneven()) {
      const IndexOperand first(cta_index(), tile_.where);
      for (Index number : range(first, order.count(), cta_count())) body(number);
      return;
    }
    const Dim tiles = order.count();
    Cell<Condition> more(true);
    if (loading) {
      Cell<Index> next(cta_index());
      repeat_while(more, [&] {
        const Index number = next;
        more = number < tiles;
        numbers_->produce(number);
        when(number < tiles, [&] {
          // One tile ahead, so that nobody waits for the counter. Each tile fetches once: the last
          // fetch of all sets the counter back for the next launch.
          const Index fetched = atomic_add((*next_tile_)(0), 1);
          when(fetched == tiles - 1, [&] { atomic_add((*next_tile_)(0), 0 - Index(tiles)); });
          next = fetched + cta_count();
          body(number);
        });
      });
      return;
    }
    repeat_while(more, [&] {
      const Slot slot = numbers_->consume();
      const Index number = slot.number();
      numbers_->release(slot);
      more = number < tiles;
      when(number < tiles, [&] { body(number); });
    });
  }

  void trace_tile(const TileOrder& order, const Index& number) {
    values_.assign(tile_.types.size(), ir::kNoValue);
    for (const auto& [value, scalar] : parameters_.scalars) values_[value] = id(scalar);
    const std::vector<Index> indices = order.indices(number);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      values_[tile_.body.arguments[i]] = id(indices[i]);
    }
    visit(tile_.body);
  }

  template <typename Value>
  ValueId id(const Value& index) {
    return tracer_.use(index.handle(), "schedule", tile_.where);
  }
  Index index(ValueId tile_value) { return Index(tracer_.handle(values_[tile_value])); }
  Tile tile(ValueId value) { return Tile(tracer_.handle(values_[value])); }
  Index group() { return Index(tracer_.handle(group_)); }
  bool scalar(ValueId value) const { return tile_.type(value).is_scalar(); }

  bool spread_by_columns(const Type& type) const {
    return placement_.by_columns() && type.is_tile() && type.shape.size() == 2 &&
           type.shape[1] == placement_.wide;
  }
  // The part of a tile that one warpgroup has.
  Type local(ValueId value) const {
    Type type = tile_.type(value);
    if (spread_by_columns(type)) {
      type.shape[1] /= placement_.groups;
    } else if (placement_.has_rows(value)) {
      type.shape[0] = kGroupRows;
    }
    return type;
  }
  // Which run of 64 rows this warpgroup has.
  Index row_part() { return placement_.by_columns() ? Index(0) : group(); }

  // A product that has been issued and not been waited for.
  struct InFlight {
    ValueId result;
    Pending product;
    ValueId registers;              // its operand in registers, or none
    std::vector<ValueId> releases;  // loads that nothing reads after it
  };

  void visit(const ir::Block& block) {
    std::map<const Operation*, std::vector<ValueId>> ends;
    for (const auto& [load, reader] : last_readers(block)) ends[reader].push_back(load);
    const std::size_t before = in_flight_.size();
    const std::set<const Operation*> first = early_loads(block);
    for (const Operation& o : block.body) {
      if (first.count(&o) != 0) operation(o);
    }
    for (const Operation& o : block.body) {
      if (first.count(&o) != 0) continue;
      const Tracer::At at(tracer_, o.where, true);
      if (!loading_) {
        finish_for(o);
        const bool waits = o.op == Op::load || o.op == Op::dot || !o.blocks.empty();
        if (waits || o.op == Op::yield) release_read(o);
      }
      operation(o);
      if (loading_) continue;
      for (const ValueId result : o.results) exchange(result, o);
      for (const ValueId load : ends[&o]) {
        if (slots_.count(load) == 0 || !placement_.in_products(load)) continue;
        if (!in_flight_.empty() && o.op == Op::dot && in_flight_.back().result == o.results[0]) {
          in_flight_.back().releases.push_back(load);
        } else {
          release_read(o);
          release(load, o);
        }
      }
    }
    const std::vector<InFlight> own(in_flight_.begin() + static_cast<std::ptrdiff_t>(before),
                                    in_flight_.end());
    finish_if(
        [&](const InFlight& p) {
          return std::any_of(own.begin(), own.end(),
                             [&](const InFlight& mine) { return mine.result == p.result; });
        },
        block.body.back());
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
      const bool address =
          ir::info(o.op).pure() && !o.results.empty() && scalar(o.results[0]) &&
          std::all_of(o.operands.begin(), o.operands.end(), [&](ValueId v) { return scalar(v); });
      if (in_order && (row || address)) {
        result.insert(&o);
      } else {
        later.insert(o.results.begin(), o.results.end());
      }
    }
    return result;
  }

  // Where every warpgroup reads all of a computed tile, each puts its rows into shared memory.
  void exchange(ValueId value, const Operation& o) {
    if (!placement_.exchanged(value)) return;
    const Tracer::At here(tracer_, o.where);
    // Nobody's products still read what was there before: they were waited for in their iteration.
    all_groups_->sync();
    tilewright::store(buffers_[plan_.buffer_of(value)].rows(group() * kGroupRows, kGroupRows),
                      tile(value), o.where);
    fence_proxy_async(o.where);
    all_groups_->sync();
  }

  void release(ValueId load, const Operation& o) {
    rings_[plan_.ring_of(load)]->release(*slots_.at(load), o.where);
  }

  // Waits for the products that the operation reads, itself or inside, and for those that still
  // read the registers that its result will take over.
  void finish_for(const Operation& o) {
    if (in_flight_.empty()) return;
    std::vector<ValueId> read = o.operands;
    if (o.op == Op::dot) read[1] = placement_.source_of(o.operands[1]).value;
    for (const ir::Block& inner : o.blocks) {
      ir::for_each(inner, [&](const Operation& nested) {
        read.insert(read.end(), nested.operands.begin(), nested.operands.end());
      });
    }
    finish_if(
        [&](const InFlight& p) {
          const bool overwritten = std::any_of(o.results.begin(), o.results.end(), [&](ValueId r) {
            const auto at = takes_over_.find(r);
            return at != takes_over_.end() && at->second == p.registers;
          });
          return overwritten || std::count(read.begin(), read.end(), p.result) != 0;
        },
        o);
  }

  template <typename Predicate>
  void finish_if(const Predicate& predicate, const Operation& o) {
    std::vector<InFlight> rest;
    for (InFlight& p : in_flight_) {
      if (!predicate(p)) {
        rest.push_back(std::move(p));
        continue;
      }
      values_[p.result] = tracer_.use(wait(p.product, o.where).handle(), "dot", o.where);
      for (const ValueId load : p.releases) release(load, o);
    }
    in_flight_ = std::move(rest);
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
      case Op::yield:
      case Op::transpose:
        return;
      case Op::slice:
        if (placement_.source_of(o.results[0]).load) return;
        break;
      case Op::load:
        return load(o);
      default:
        break;
    }
    const auto is_tile = [&](ValueId v) { return tile_.type(v).is_tile(); };
    const bool tile = std::any_of(o.results.begin(), o.results.end(), is_tile) ||
                      std::any_of(o.operands.begin(), o.operands.end(), is_tile);
    if (loading_ && tile) return;
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
        if (o.attributes.integer(Key::axis) == 1) break;
        unfit(o, "along rows, which are spread over warps", "reduce along axis 1");
      default:
        break;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : o.operands) {
      // A number that only tiles decide is the arithmetic's alone.
      if (loading_ && values_[operand] == ir::kNoValue) return;
      operands.push_back(values_[operand]);
    }
    values_[o.results[0]] =
        tracer_.emit(o.op, std::move(operands), local(o.results[0]), o.attributes, o.where);
  }

  // The view of global memory that a load or store names; of a spread one the warpgroup's rows, or
  // a warp's, and of those a piece of the columns.
  struct Part {
    bool spread = false;
    bool of_warp = false;
    int columns = 0;
    Index piece = 0;
  };
  TensorView view(const Operation& o, std::size_t first, const Part& part) {
    const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
    std::vector<Selector> selectors;
    int seen = 0;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const Index start = number(o, first + axis);
      if (sizes[axis] == 0) {
        selectors.push_back(Selector(start));
        continue;
      }
      Block block(start, static_cast<int>(sizes[axis]), number(o, first + sizes.size() + axis));
      if (seen == 0 && part.spread) block = block.part(row_part(), kGroupRows);
      if (seen == 0 && part.of_warp) block = block.part(warp_index(), kWarpRows);
      if (seen == 1 && part.columns > 0) block = block.part(part.piece, part.columns);
      ++seen;
      selectors.push_back(Selector(block));
    }
    return TensorView(parameters_.tensors.at(o.operands[0]).handle(), std::move(selectors),
                      o.where);
  }

  // What of a tile this warpgroup has.
  Part own_part(ValueId value) {
    Part part{placement_.has_rows(value)};
    if (spread_by_columns(tile_.type(value))) {
      part.columns = static_cast<int>(local(value).shape[1]);
      part.piece = group();
    }
    return part;
  }

  // A scalar operand, which the producer may not have.
  Index number(const Operation& o, std::size_t operand) {
    if (values_[o.operands[operand]] == ir::kNoValue) {
      unfit(o, "where it reads depends on what was computed", "compute addresses from indices");
    }
    return index(o.operands[operand]);
  }

  // All warps meet between a load and the stores to its tensor, where these may be of other warps.
  void meet(const Operation& load, bool needed) {
    if (!needed) return;
    const ValueId value = load.results[0];
    const bool spread =
        placement_.by_columns() ? spread_by_columns(tile_.type(value)) : placement_.has_rows(value);
    if (placement_.memory.stored_elsewhere(load) || !spread) return all_groups_->sync();
    warp_sync(load.where);
  }

  void load(const Operation& o) {
    if (!placement_.in_ring(o)) {
      if (!loading_) {
        const Part part = own_part(o.results[0]);
        meet(o, placement_.memory.after_store(o));
        values_[o.results[0]] = id(tilewright::load(view(o, 1, part), o.where));
        meet(o, placement_.memory.stored(o));
      }
      return;
    }
    Ring& ring = *rings_[plan_.ring_of(o.results[0])];
    if (loading_) {
      return ring.produce([&](const Slot& slot) { tma_load(view(o, 1, {}), slot, {}, o.where); },
                          o.where);
    }
    const auto slot =
        slots_.insert_or_assign(o.results[0], std::make_unique<Slot>(ring.consume(o.where))).first;
    if (!placement_.in_registers(o.results[0])) return;
    const SharedView rows = (*slot->second)[0].rows(row_part() * kGroupRows, kGroupRows);
    values_[o.results[0]] = id(tilewright::load(rows, o.where));
    read_.push_back(o.results[0]);
  }

  // Gives back the stages that were read into registers, once something else waits: the fence takes
  // its time. Without it TMA might write a stage while the reads are still under way.
  void release_read(const Operation& o) {
    if (read_.empty()) return;
    const Tracer::At at(tracer_, o.where);
    fence_proxy_async(o.where);
    warp_sync(o.where);
    for (const ValueId load : read_) {
      if (placement_.in_products(load)) continue;
      release(load, o);
      slots_.erase(load);
    }
    read_.clear();
  }

  // What a product reads from shared memory.
  SharedView shared_part(const Source& source) {
    SharedView view =
        source.load ? (*slots_.at(source.value))[0] : buffers_[plan_.buffer_of(source.value)];
    if (source.rows != view.row_count()) {
      view = view.rows(static_cast<int>(source.row), static_cast<int>(source.rows));
    }
    if (source.columns != view.column_count()) {
      view = view.columns(static_cast<int>(source.column), static_cast<int>(source.columns));
    }
    return view;
  }
  // This warpgroup's rows of a product's first operand.
  SharedView left(const Source& source) {
    const SharedView view = shared_part(source);
    if (source.transposed) return view.column_part(row_part(), kGroupRows).T();
    return view.rows(row_part() * kGroupRows, kGroupRows);
  }
  // The second operand: whole, but for results that are spread by columns.
  SharedView right(const Source& source, bool spread) {
    SharedView view = shared_part(source);
    const int own = static_cast<int>(placement_.wide) / placement_.groups;
    if (spread && source.transposed) view = view.rows(group() * own, own);
    if (spread && !source.transposed) view = view.column_part(group(), own);
    return source.transposed ? view.T() : view;
  }

  void dot(const Operation& o) {
    const Source a = placement_.source_of(o.operands[0]);
    const SharedView b =
        right(placement_.source_of(o.operands[1]), spread_by_columns(tile_.type(o.results[0])));
    const bool accumulates = o.operands.size() > 2;
    const auto issue = [&](const auto& first) {
      return accumulates ? wgmma(first, b, tile(o.operands[2]), o.where) : wgmma(first, b, o.where);
    };
    if (turns_.takes(o)) turn_->sync(group());
    in_flight_.push_back({o.results[0],
                          a.load ? issue(left(a)) : issue(tile(o.operands[0])),
                          a.load ? ir::kNoValue : o.operands[0],
                          {}});
    if (turns_.takes(o)) turn_->arrive((group() + 1) % placement_.groups);
  }

  void store(const Operation& o) {
    const Type& type = tile_.type(o.operands[1]);
    const bool in_parts = placement_.by_columns() ? spread_by_columns(type)
                                                  : placement_.has_rows(o.operands[1]);
    if (!in_parts && placement_.groups > 1) {
      // All warpgroups have it.
      return when(
          group() == 0, [&] { store_own(o, false); }, {}, o.where);
    }
    store_own(o, spread_by_columns(type));
  }

  void store_own(const Operation& o, bool by_columns) {
    const SharedPlan::Staging* plan = plan_.staging_of(o);
    if (!plan) {
      return tilewright::store(view(o, 2, own_part(o.operands[1])), tile(o.operands[1]), o.where);
    }
    for (int piece = 0; piece < plan->pieces; ++piece) {
      const SharedTile& buffer = buffers_[plan->buffers[piece % plan->buffers.size()]];
      bulk_wait_read(plan->in_flight, o.where);
      warp_sync(o.where);
      tilewright::store(buffer.rows(group() * kGroupRows, kGroupRows),
                        columns(o.operands[1], piece * plan->columns, plan->columns, o), o.where);
      fence_proxy_async(o.where);
      warp_sync(o.where);
      // Each warp sends its own rows: it waits for no other.
      const Index place = by_columns ? group() * plan->pieces + piece : Index(piece);
      tma_store(view(o, 2, {true, true, plan->columns, place}),
                buffer.rows(group() * kGroupRows + warp_index() * kWarpRows, kWarpRows), o.where);
      bulk_commit(o.where);
    }
  }

  // Some columns of a tile; of a converted one they are converted piece by piece.
  Tile columns(ValueId value, int first, int count, const Operation& o) {
    const Operation* made = placement_.definitions[value];
    if (!made || made->op != Op::cast || values_[made->operands[0]] == ir::kNoValue) {
      return tile(value).slice({0, first}, {kGroupRows, count}, o.where);
    }
    return tile(made->operands[0])
        .slice({0, first}, {kGroupRows, count}, o.where)
        .cast(tile_.type(value).dtype, o.where);
  }

  void iota(const Operation& o) {
    const Type type = local(o.results[0]);
    ValueId value = tracer_.emit(Op::iota, {}, type, o.attributes, o.where);
    if (o.attributes.integer(Key::axis) == 0 && placement_.has_rows(o.results[0])) {
      value = tracer_.emit(Op::add, {value, id(row_part() * kGroupRows)}, type, {}, o.where);
    }
    values_[o.results[0]] = value;
  }

  // Each warp knows of its own elements; what one has found, all have to know.
  void any(const Operation& o) {
    values_[o.results[0]] =
        tracer_.emit(Op::any, {values_[o.operands[0]]}, tile_.type(o.results[0]), {}, o.where);
    if (o.attributes.has(Key::partial)) return;
    const Condition own(tracer_.handle(values_[o.results[0]]));
    answers_->store(group() * kGroupWarps + warp_index(), select(own, 1, 0), o.where);
    all_groups_->sync();
    Index found = 0;
    for (int warp = 0; warp < placement_.groups * kGroupWarps; ++warp) {
      found = max(found, answers_->load(warp, o.where));
    }
    values_[o.results[0]] = id(found > 0);
    // Before the next answer takes the place of this one.
    all_groups_->sync();
  }

  // Carried values become cells; the producer carries scalars only.
  struct Carried {
    std::size_t position;
    int slot;
  };

  void loop(const Operation& o) {
    const auto is_scalar = [&](ValueId r) { return scalar(r); };
    if (loading_ && !placement_.fills_rings(o.blocks[0])) {
      if (std::none_of(o.results.begin(), o.results.end(), is_scalar)) return;
      unfit(o, "computes a number", "compute it outside of the loop");
    }
    const ir::Block& body = o.blocks[0];
    std::vector<Carried> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (loading_ && !scalar(o.results[i])) continue;
      cells.push_back({i, tracer_.open_cell(values_[o.operands[3 + i]], o.where)});
      takes_over_[body.body.back().operands[i]] = body.arguments[1 + i];
    }
    values_[body.arguments[0]] = tracer_.open_loop(values_[o.operands[0]], values_[o.operands[1]],
                                                   values_[o.operands[2]], o.where);
    for (const Carried& c : cells) {
      values_[body.arguments[1 + c.position]] = tracer_.read(c.slot, o.where);
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
      if (!scalar(result)) {
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
        tracer_.use(parameters_.tensors.at(o.operands[0]).handle(), "load_index", o.where)};
    for (std::size_t i = 1; i < o.operands.size(); ++i) {
      operands.push_back(id(number(o, i)));
    }
    values_[o.results[0]] =
        tracer_.emit(Op::load_index, std::move(operands), tile_.type(o.results[0]), {}, o.where);
  }

  void branch(const Operation& o) {
    if (loading_ && values_[o.operands[0]] == ir::kNoValue) {
      for (const ir::Block& inner : o.blocks) {
        if (placement_.fills_rings(inner)) {
          unfit(o, "a condition that is computed decides what is loaded",
                "load in either case, or decide by indices");
        }
      }
      return;
    }
    std::vector<Carried> cells;
    // A cell needs a value before the branches give it theirs.
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (loading_ && !scalar(o.results[i])) continue;
      const Type type = local(o.results[i]);
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
  const analysis::Extents extents_;
  const SharedPlan plan_;
  const Turns turns_;
  Kernel kernel_;
  Tracer& tracer_;
  Parameters parameters_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<SharedTile> buffers_;
  std::optional<NamedBarrier> all_groups_;
  std::optional<NamedBarrier> turn_;       // of each warpgroup
  std::optional<SharedIntegers> answers_;  // of each warp
  std::unique_ptr<Ring> numbers_;          // of tiles that are taken from a counter
  std::optional<Tensor> next_tile_;
  std::map<ValueId, std::unique_ptr<Slot>> slots_;
  std::map<ValueId, ValueId> takes_over_;  // from what a loop carries on to what it was before
  std::vector<ValueId> read_;              // loads whose stages wait for a fence
  std::vector<InFlight> in_flight_;        // in the order of their issue
  std::vector<ValueId> values_;            // of the tile form, in the role that is recorded
  bool loading_ = false;
  ValueId group_ = ir::kNoValue;
};

}  // namespace

ir::Kernel schedule_for_hopper(const ir::Kernel& tile) { return Retracing(tile).run(); }

}  // namespace tilewright::schedules
