#include "schedules/core_tiles.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "schedules/block_turns.h"
#include "schedules/core_moves.h"
#include "schedules/loaded_parts.h"
#include "target/core_rules.h"

namespace tilewright::schedules {
namespace {

using ir::Extent2;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using Start = CoreRoute::Start;

// What a vector operation takes: a window, or a number.
struct Taken {
  std::optional<CoreWindow> window;
  const void* place = nullptr;
  ValueId number = ir::kNoValue;
};

class CoreTilesRetracing final : public Retracer, public CoreMoves {
 public:
  explicit CoreTilesRetracing(Recording& values) : Retracer(values), CoreMoves(values) {}

  ir::Kernel run() {
    values_.declare();
    declare();
    const Dim blocks = blocks_of(tile_.grid);
    kernel_.ctas(min(min(multiprocessors(), core_.count), blocks), 1, tile_.where);
    std::vector<RoleSpec> roles;
    for (const target::CoreSequencer& each : core_.sequencers) {
      if (used_.count(each.name) == 0) continue;
      roles.push_back(sequencer(
          each.name, [this, name = each.name](const Index& instance) { trace(name, instance); },
          tile_.where));
    }
    kernel_.roles(std::span<const RoleSpec>(roles), tile_.where);
    return kernel_.finish();
  }

 private:
  using CoreMoves::kernel_;
  using CoreMoves::tile_;
  using CoreMoves::tracer_;

  bool vector_here() const { return own(vector_.unit); }

  // ---- Vector work.

  Taken taken(ValueId value) {
    if (!tiles_.is_tile(value)) return {std::nullopt, nullptr, values_[value]};
    const ValueId base = tiles_.seen(value).base;
    if (tiles_.is_number(base)) {
      return {std::nullopt, nullptr, values_[tiles_.made(base)->operands[0]]};
    }
    if (const auto found = buffer_.find(base); found != buffer_.end()) {
      const CoreBuffer& buffer = buffers_[found->second];
      const Extent2 own = part_of(buffer.extent);
      const CoreWindow whole = (*buffer.memory)[0];
      const bool is_wider = buffer.pitch != own.columns;
      return {is_wider ? whole.part(0, 0, static_cast<int>(own.rows), static_cast<int>(own.columns))
                       : whole,
              buffer.memory.get(), ir::kNoValue};
    }
    CoreRoute* route = find_route(base, CoreEnd::vector, false);
    if (route == nullptr) refuse_turned(*tiles_.made(base));
    CoreStop& stop = route->stops.back();
    return {(*stop.memory)[*stop.read], &stop, ir::kNoValue};
  }
  void barrier() {
    if (!vector_here()) return;
    if (!core_.unit(vector_.unit)->orders_itself && !(read_.empty() && written_.empty())) {
      unit_barrier(vector_.unit);
    }
    read_.clear();
    written_.clear();
  }
  void emit_vector(const Operation& o, Op op, const Taken& to, const std::vector<Taken>& of,
                   ir::Attributes attributes) {
    if (!vector_here()) return;
    const auto& lacks = vector_.lacks;
    if (op == Op::core_vector) {
      const std::string_view name = ir::info(attributes.function()).name;
      if (std::find(lacks.begin(), lacks.end(), name) != lacks.end()) {
        refuse(o, vector_.unit + " has no " + std::string(name));
      }
    }
    bool waits = written_.count(to.place) != 0 || read_.count(to.place) != 0;
    for (const Taken& each : of) waits = waits || (each.window && written_.count(each.place) != 0);
    if (waits) barrier();
    std::vector<ValueId> operands{CoreTracing::emit(tracer_, *to.window, "schedule", o.where)};
    for (const Taken& each : of) {
      operands.push_back(each.window ? CoreTracing::emit(tracer_, *each.window, "schedule", o.where)
                                     : each.number);
      if (each.window) read_.insert(each.place);
    }
    written_.insert(to.place);
    attributes.set(Key::unit, vector_.unit);
    plain(tracer_, op, std::move(operands), std::move(attributes), o.where);
  }
  void copy(const Operation& o, const Taken& to, const Taken& from) {
    if (!from.window) return emit_vector(o, Op::core_fill, to, {from}, {});
    if (from.place == to.place) return;
    emit_vector(o, Op::core_vector, to, {from}, {{Key::function, Op::cast}});
  }
  // A value of vector work, where it is only written for a way, or kept.
  void make(const Operation& o, ValueId result, const std::function<void(const Taken& to)>& write) {
    if (CoreRoute* only = only_route(result)) {
      CoreStop& stop = only->stops.front();
      begin_write(stop);
      if (vector_here()) write({(*stop.memory)[*stop.written], &stop, ir::kNoValue});
      end_write(stop);
      return advance(*only);
    }
    if (vector_here()) write(taken(result));
    settle(o, result);
  }
  // What products take of it goes its way.
  void settle(const Operation& o, ValueId base) {
    for (CoreRoute& route : routes_) {
      if (route.base != base || route.start != Start::vector || route.end == CoreEnd::tensor) {
        continue;
      }
      hand_on(o, route);
    }
  }
  void hand_on(const Operation& o, CoreRoute& route) {
    CoreStop& stop = route.stops.front();
    begin_write(stop);
    if (vector_here()) {
      copy(o, {(*stop.memory)[*stop.written], &stop, ir::kNoValue}, taken(route.base));
    }
    end_write(stop);
    advance(route);
  }
  // Its rows from that one on.
  Taken rows_of(const Operation& o, const Taken& whole, ValueId value, std::int64_t row,
                std::int64_t rows, std::int64_t columns) {
    const ValueId base = tiles_.seen(value).base;
    const Extent2 extent = tiles_.extent(base);
    const auto buffer = buffer_.find(base);
    const target::Matrix matrix{
        extent.rows, buffer == buffer_.end() ? extent.columns : buffers_[buffer->second].pitch,
        tiles_.dtype(base)};
    const target::CoreProblem start =
        target::check_start(*core_.space(vector_.writes.front()), matrix, row, 0);
    if (!start.none()) {
      refuse(o, "a tile with several axes of rows is taken in parts: " + start.problem, start.fix);
    }
    return {whole.window->part(static_cast<int>(row), 0, static_cast<int>(rows),
                               static_cast<int>(columns), o.where),
            whole.place, ir::kNoValue};
  }
  // One index of the first axis after the other.
  void by_first_axis(const Operation& o, const Taken& to, const std::vector<Taken>& of) {
    const std::vector<std::int64_t>& shape = tile_.type(o.results[0]).shape;
    if (shape.size() != 3) refuse(o, "operands that stretch inside of more than two axes of rows");
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      const auto piece = [&](ValueId value, const Taken& whole) {
        const std::vector<std::int64_t>& own = tile_.type(value).shape;
        return rows_of(o, whole, value, own[0] == 1 ? 0 : i * own[1], own[1], own[2]);
      };
      std::vector<Taken> pieces = of;
      for (std::size_t k = 0; k < of.size(); ++k) {
        if (of[k].window) pieces[k] = piece(o.operands[k], of[k]);
      }
      emit_vector(o, Op::core_vector, piece(o.results[0], to), pieces, {{Key::function, o.op}});
    }
  }
  // Axes before the last are rows, one inside of the other.
  void reduce(const Operation& o, const Taken& to, const Taken& from) {
    const std::vector<std::int64_t>& shape = tile_.type(o.operands[0]).shape;
    const auto axis = static_cast<std::size_t>(o.attributes.integer(Key::axis));
    const Op function = o.attributes.function();
    const auto along = [&](std::int64_t which, const Taken& target, const Taken& source) {
      emit_vector(o, Op::core_reduce, target, {source},
                  {{Key::function, function}, {Key::axis, which}});
    };
    if (axis + 1 == shape.size()) return along(1, to, from);
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::size_t i = axis + 1; i + 1 < shape.size(); ++i) inner *= shape[i];
    if (outer == 1 && inner == 1) return along(0, to, from);
    for (std::int64_t i = 0; i < outer; ++i) {
      const Taken target = rows_of(o, to, o.results[0], i * inner, inner, shape.back());
      const auto source = [&](std::int64_t row, std::int64_t rows) {
        return rows_of(o, from, o.operands[0], i * shape[axis] * inner + row, rows, shape.back());
      };
      if (inner == 1) {
        along(0, target, source(0, shape[axis]));
        continue;
      }
      copy(o, target, source(0, inner));
      for (std::int64_t j = 1; j < shape[axis]; ++j) {
        emit_vector(o, Op::core_vector, target, {target, source(j * inner, inner)},
                    {{Key::function, function}});
      }
    }
  }
  // Of its coordinate along an axis: the two axes of the tile have to count it.
  std::int64_t counted_axis(const Operation& o) const {
    const std::vector<std::int64_t>& shape = tile_.type(o.results[0]).shape;
    const auto axis = static_cast<std::size_t>(o.attributes.integer(Key::axis));
    if (axis + 1 == shape.size()) return 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
      if (i != axis && shape[i] != 1) {
        refuse(o, "an iota along one of several axes of rows",
               "count along the only one, or the last");
      }
    }
    return 0;
  }
  // By global memory, where nobody asks in which shape elements were written.
  void reshape(const Operation& o) {
    CoreRoute& route = *std::find_if(routes_.begin(), routes_.end(), [&](const CoreRoute& each) {
      return each.base == o.results[0] && each.start == Start::reshape;
    });
    CoreStop &first = route.stops.front(), &last = route.stops.back();
    begin_write(first);
    if (vector_here()) {
      copy(o, {(*first.memory)[*first.written], &first, ir::kNoValue}, taken(o.operands[0]));
    }
    end_write(first);
    advance(route);
    make(o, o.results[0], [&](const Taken& to) {
      begin_read(last);
      copy(o, to, {(*last.memory)[*last.read], &last, ir::kNoValue});
      end_read(last);
    });
  }
  void vector_operation(const Operation& o) {
    make(o, o.results[0], [&](const Taken& to) {
      std::vector<Taken> of;
      for (const ValueId operand : o.operands) of.push_back(taken(operand));
      if (o.op == Op::splat) return copy(o, to, of.front());
      if (o.op == Op::reduce) return reduce(o, to, of.front());
      if (o.op == Op::iota) {
        const std::int64_t axis = counted_axis(o);
        const bool moved = axis == 0 && is_split(tiles_.extent(o.results[0]));
        const Index first =
            moved ? *instance_ * static_cast<int>(part_of(tiles_.extent(o.results[0])).rows)
                  : Index(0);
        return emit_vector(o, Op::core_iota, to, {{std::nullopt, nullptr, values_.id(first)}},
                           {{Key::axis, axis}});
      }
      if (!ir::info(o.op).elementwise()) {
        refuse(o, vector_.unit + " has no " + std::string(ir::info(o.op).name));
      }
      if (tiles_.stretches_inside(o)) return by_first_axis(o, to, of);
      emit_vector(o, Op::core_vector, to, of, {{Key::function, o.op}});
    });
  }

  // ---- Products.

  void product(const Operation& o) {
    const ValueId base = tiles_.product_of(o);
    const bool sums = base != o.results[0];
    const auto operand = [&](std::size_t i, CoreEnd end) -> CoreStop& {
      const CoreTiles::Seen seen = tiles_.seen(o.operands[i]);
      return find_route(seen.base, end, seen.turned)->stops.back();
    };
    for (CoreRoute& route : routes_) {
      if (route.base != base || route.start != Start::product) continue;
      CoreStop& stop = route.stops.front();
      if (!sums) begin_write(stop);
      if (own(product_.unit)) {
        CoreStop &a = operand(0, CoreEnd::left), &b = operand(1, CoreEnd::right);
        const CoreWindow left = (*a.memory)[*a.read];
        const CoreWindow to = (*stop.memory)[*stop.written],
                         first = product_.left_transposed ? left.T() : left;
        const Condition adds = sums ? *accumulate_ : Condition(false);
        if (sums && turns_) {
          matmul(to, first, (*b.memory)[*b.read], adds, *turns_ * first.column_count(), o.where);
        } else {
          matmul(to, first, (*b.memory)[*b.read], adds, o.where);
        }
      }
      if (sums) continue;
      end_write(stop);
      if (route.end != CoreEnd::tensor) advance(route);
      if (!tiles_.adds_by_itself(o)) continue;
      if (vector_here()) {
        CoreStop& made = route.stops.back();
        begin_read(made);
        emit_vector(o, Op::core_vector, taken(o.results[0]),
                    {taken(o.operands[2]), {(*made.memory)[*made.read], &made, ir::kNoValue}},
                    {{Key::function, Op::add}});
        end_read(made);
      }
      settle(o, o.results[0]);
    }
  }
  // Whether an index on one of its axes is of the loop's turn: without a turn there is none.
  bool is_indexed_in(const Operation& load, const Operation& loop) const {
    const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
    const ir::Block& block = loop.blocks[0];
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const ValueId index = load.operands[1 + axis];
      const bool is_of_turn =
          index == block.arguments[0] ||
          std::any_of(block.body.begin(), block.body.end(),
                      [&](const Operation& each) { return &each == tiles_.made(index); });
      if (sizes[axis] == 0 && is_of_turn) return true;
    }
    return false;
  }
  bool is_placed(const Operation& load) const {
    const std::vector<analysis::AxisCheck> own = checks(load);
    return std::any_of(own.begin(), own.end(), [](const auto& check) {
      return check.size != 0 && (check.placed || check.counted);
    });
  }
  void accumulating_loop(const Operation& o) {
    const auto each = [&](const std::function<void(CoreRoute&)>& act) {
      for (CoreRoute& route : routes_) {
        if (route.start == Start::product &&
            std::find(o.results.begin(), o.results.end(), route.base) != o.results.end()) {
          act(route);
        }
      }
    };
    each([&](CoreRoute& route) { begin_write(route.stops.front()); });
    const Index low = values_.index(o.operands[0]), high = values_.index(o.operands[1]);
    // Where it has no turn it has one of which nothing is summed: what was computed of elements
    // that there are not need not be zero.
    const std::vector<Operation>& body = o.blocks[0].body;
    const bool computes = std::any_of(body.begin(), body.end(),
                                      [&](const Operation& each) { return is_vector_work(each); });
    for (const Operation& each : body) {
      const bool placed = each.op == Op::load && (is_indexed_in(each, o) || is_placed(each));
      if (placed) guarded_.insert(&each);
    }
    if (computes) barrier();
    if (computes || !guarded_.empty() || !tiles_.loads_nothing_without_a_turn(o)) {
      turns_ = min(max(high - low, 0), 1);
    }
    const ValueId index = tracer_.open_loop(values_.id(low), values_.id(max(high, low + 1)),
                                            values_[o.operands[2]], o.where);
    values_[o.blocks[0].arguments[0]] = index;
    accumulate_ = Index(tracer_.handle(index)) > low;
    visit(o.blocks[0]);
    if (computes) barrier();
    tracer_.close_loop();
    turns_.reset();
    guarded_.clear();
    each([&](CoreRoute& route) {
      end_write(route.stops.front());
      if (route.end != CoreEnd::tensor) advance(route);
    });
  }

  // ---- Control.

  void trace(const std::string& name, const Index& instance) {
    own_ = name;
    instance_ = instance;
    const Tracer::At at(tracer_, tile_.where);
    begin_role();
    for (Index number : range(cta_index(), blocks_of(tile_.grid), cta_count())) {
      values_.begin_block(indices_of(tile_.grid, number));
      visit(tile_.body);
      barrier();
    }
    end_role();
  }
  void visit(const ir::Block& block) override {
    for (const Operation& o : block.body) perform(o);
  }
  void perform(const Operation& o) {
    const Tracer::At at(tracer_, o.where, true);
    for (CoreRoute& route : routes_) {
      if (route.first == &o && own(taker(route)) && route.end != CoreEnd::tensor) {
        begin_read(route.stops.back());
      }
    }
    record(o);
    for (CoreRoute& route : routes_) {
      if (route.last == &o && own(taker(route)) && route.end != CoreEnd::tensor) {
        end_read(route.stops.back());
      }
    }
  }
  void record(const Operation& o) {
    if (o.op == Op::yield) {
      if (const auto found = at_yield_.find(&o); found != at_yield_.end()) found->second();
      return;
    }
    if (o.op == Op::any) return;
    if (o.op == Op::load || o.op == Op::store) order(o);
    if (o.op == Op::load) {
      for (CoreRoute& route : routes_) {
        const bool here = route.load != nullptr ? route.load == &o : route.base == o.results[0];
        if (here && route.start == Start::tensor) advance(route);
      }
      return;
    }
    if (o.op == Op::dot) return product(o);
    if (o.op == Op::store) {
      for (CoreRoute& route : routes_) {
        if (route.store != &o) continue;
        route.start == Start::vector ? hand_on(o, route) : advance(route);
      }
      return;
    }
    if (o.op == Op::for_loop && tiles_.accumulates(o)) return accumulating_loop(o);
    if (o.op == Op::for_loop) return tiles_.has_tiles(o) ? tile_loop(o) : for_loop(o);
    if (o.op == Op::while_loop) return while_loop(o);
    if (o.op == Op::if_then) return tiles_.has_tiles(o) ? branch(o) : if_then(o);
    if (o.op == Op::red_tile) refuse(o, "add() to a tensor: nothing adds in " + core_.global_name);
    if (o.results.size() != 1) refuse(o, std::string(ir::info(o.op).name) + " is no work of units");
    if (!tiles_.is_tile(o.results[0])) return repeat(o, o.attributes);
    const ValueId base = tiles_.seen(o.results[0]).base;
    if (tiles_.moves_elements(o)) return reshape(o);
    if (base == o.results[0] && !tiles_.is_number(base)) vector_operation(o);
  }

  void branch(const Operation& o) {
    for (const ValueId result : o.results) {
      if (!tiles_.is_tile(result)) refuse(o, "a condition that chooses numbers beside tiles");
    }
    const auto yielded = [&](int which, std::size_t i) {
      return taken(o.blocks[which].body.back().operands[i]);
    };
    if (const Operation* any = tiles_.computed_condition(o)) {
      if (!any->attributes.has(Key::partial)) {
        refuse(o, "a condition on what was computed, which sequencers do not see",
               "take any_nearby, where either answer is right");
      }
      visit(o.blocks[0]);
      visit(o.blocks[1]);
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        if (vector_here()) {
          emit_vector(o, Op::core_vector, taken(o.results[i]),
                      {taken(any->operands[0]), yielded(0, i), yielded(1, i)},
                      {{Key::function, Op::select}});
        }
        settle(o, o.results[i]);
      }
      return;
    }
    barrier();
    const auto run = [&](int which) {
      return [&, which] {
        at_yield_[&o.blocks[which].body.back()] = [&, which] {
          for (std::size_t i = 0; vector_here() && i < o.results.size(); ++i) {
            copy(o, taken(o.results[i]), yielded(which, i));
          }
        };
        visit(o.blocks[which]);
        barrier();
      };
    };
    tracer_.trace_if(values_[o.operands[0]], run(0), run(1), o.where);
    for (const ValueId result : o.results) settle(o, result);
  }

  // Those of the body, or of its half.
  void half(const Operation& loop, bool early) {
    const std::set<const Operation*>& ahead = ahead_.at(&loop);
    for (const Operation& o : loop.blocks[0].body) {
      if (early && o.op == Op::yield) continue;
      if (!tiles_.has_tiles(o) || (ahead.count(&o) != 0) == early) perform(o);
    }
  }
  void tile_loop(const Operation& o) {
    const ir::Block& body = o.blocks[0];
    std::vector<std::pair<std::size_t, int>> cells;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (!tiles_.is_tile(o.results[i])) {
        cells.emplace_back(i, tracer_.open_cell(values_[o.operands[3 + i]], o.where));
      } else if (vector_here()) {
        copy(o, taken(o.results[i]), taken(o.operands[3 + i]));
      }
    }
    barrier();
    const auto found = ahead_.find(&o);
    const Index low = values_.index(o.operands[0]), high = values_.index(o.operands[1]),
                by = values_.index(o.operands[2]);
    const auto early = [&](const Index& at) {
      when(at < high, [&] {
        values_[body.arguments[0]] = values_.id(at);
        half(o, true);
      });
    };
    if (found != ahead_.end()) early(low);
    const ValueId index = tracer_.open_loop(values_[o.operands[0]], values_[o.operands[1]],
                                            values_[o.operands[2]], o.where);
    if (found != ahead_.end()) early(Index(tracer_.handle(index)) + by);
    values_[body.arguments[0]] = index;
    for (const auto& [i, slot] : cells) {
      values_[body.arguments[1 + i]] = tracer_.read(slot, o.where);
    }
    for (std::size_t i = 1; i < body.arguments.size(); ++i) {
      if (tiles_.is_tile(body.arguments[i])) settle(o, body.arguments[i]);
    }
    at_yield_[&body.body.back()] = [&] { carry(o); };
    found != ahead_.end() ? half(o, false) : visit(body);
    const std::vector<ValueId>& yielded = body.body.back().operands;
    for (const auto& [i, slot] : cells) tracer_.assign(slot, values_[yielded[i]], o.where);
    barrier();
    tracer_.close_loop();
    for (const auto& [i, slot] : cells) {
      values_[o.results[i]] = tracer_.read(slot, o.where);
      tracer_.close_cell(slot);
    }
    for (const ValueId result : o.results) {
      if (tiles_.is_tile(result)) settle(o, result);
    }
  }
  // Each value to where the next iteration looks for it, once nobody looks there any more.
  void carry(const Operation& o) {
    if (!vector_here()) return;
    const std::vector<ValueId>& yielded = o.blocks[0].body.back().operands;
    std::vector<std::pair<Taken, Taken>> copies;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (!tiles_.is_tile(o.results[i])) continue;
      const Taken to = taken(o.results[i]), from = taken(yielded[i]);
      if (to.place != from.place) copies.emplace_back(to, from);
    }
    while (!copies.empty()) {
      const auto next = std::find_if(copies.begin(), copies.end(), [&](const auto& each) {
        return std::none_of(copies.begin(), copies.end(), [&](const auto& other) {
          return other.second.place == each.first.place;
        });
      });
      if (next == copies.end()) refuse(o, "a loop whose values change places");
      copy(o, next->first, next->second);
      copies.erase(next);
    }
  }
  std::optional<Condition> accumulate_;  // whether the loop's product adds
  // What becomes of values that a block yields, as long as they lie where they were loaded.
  std::map<const Operation*, std::function<void()>> at_yield_;
  std::set<const void*> read_, written_;  // by the vector unit since its last barrier
};

}  // namespace

Scheduled schedule_core_tiles(const ir::Kernel& traced) {
  ir::Kernel tile = traced;
  load_parts(tile);
  for (const ir::StatedField& field : ir::stated_fields(tile.schedule)) {
    if (field.name == "stages") continue;
    Diagnostic(field.where, "schedule: " + field.name + " = " + field.value + ": " + tile.target +
                                " has no such thing")
        .token(field.name)
        .fix("leave it out")
        .raise();
  }
  Recording values(tile);
  CoreTilesRetracing retracing(values);
  Scheduled made{retracing.run(), {}};
  made.fields = {chosen("stages", tile.schedule.stages, retracing.stages_text())};
  return made;
}

}  // namespace tilewright::schedules
