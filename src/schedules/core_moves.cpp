#include "schedules/core_moves.h"

#include <algorithm>
#include <utility>

#include "target/core_rules.h"

namespace tilewright::schedules {

using ir::Extent2;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using target::CoreMove;
using Start = CoreRoute::Start;

bool CoreMoves::own(const std::string& unit) const { return owner(unit) == own_; }

void CoreMoves::declare() {
  const CoreStop* shared = nullptr;
  for (CoreRoute& route : routes_) {
    for (CoreStop& stop : route.stops) {
      const int rows = static_cast<int>(stop.extent.rows);
      const int columns = static_cast<int>(stop.extent.columns);
      if (stop.space.empty()) {
        stop.place = scratch(stop, route.where);
      } else {
        stop.memory = std::make_unique<CoreMemory>(kernel_, stop.space, stop.name, stop.dtype, rows,
                                                   columns, stages(stop.stages), route.where);
      }
      if (!stop.is_ring()) continue;
      if (!stop.opens) {  // with what was loaded just before
        stop.full = shared->full;
        stop.free = shared->free;
      } else {
        stop.full = std::make_shared<CoreEvent>(kernel_, stop.writer, stop.reader, stop.stages,
                                                route.where);
        stop.free = std::make_shared<CoreEvent>(kernel_, stop.reader, stop.writer, stop.stages,
                                                route.where);
      }
      if (route.load != nullptr) shared = &stop;
    }
  }
  for (const auto& [from, to] : hops_) {
    hop_events_.emplace(std::pair{from, to}, HopEvents{{kernel_, from, to, 1, tile_.where},
                                                       {kernel_, to, from, 1, tile_.where}});
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    CoreBuffer& buffer = buffers_[i];
    const Extent2 extent = part_of(buffer.extent);
    buffer.memory = std::make_unique<CoreMemory>(
        kernel_, vector_.writes.front(), "w" + std::to_string(i), buffer.dtype,
        static_cast<int>(extent.rows), static_cast<int>(buffer.pitch), stages(1), buffer.where);
  }
}

Tensor CoreMoves::scratch(const CoreStop& stop, SourceLocation where) {
  ir::Kernel& kernel = tracer_.kernel();
  ir::Parameter parameter;
  parameter.kind = ir::Parameter::Kind::scratch;
  parameter.name = stop.name;
  parameter.dtype = stop.dtype;
  parameter.where = where;
  const Dim rows(static_cast<int>(stop.whole.rows)), columns(static_cast<int>(stop.whole.columns));
  const Dim places(static_cast<int>(core_.count * stop.stages));
  if (stop.of_instance) {
    parameter.shape = {places * instances_, rows, columns};
  } else {
    parameter.shape = {places * rows, columns};
  }
  const auto rank = static_cast<std::int64_t>(parameter.shape.size());
  parameter.value = kernel.add_value(ir::Type::of(ir::Type::Kind::tensor, stop.dtype, {rank}));
  kernel.parameters.push_back(std::move(parameter));
  return Tensor(tracer_.declare(kernel.parameters.back().value, where));
}

void CoreMoves::begin_role() {
  for (CoreRoute& route : routes_) {
    for (CoreStop& stop : route.stops) {
      if (!stop.is_ring()) continue;
      const auto begin = [&](std::unique_ptr<Cell<Index>>& next) {
        if (stop.stages > 1) {
          next = std::make_unique<Cell<Index>>(Index(0, route.where), route.where);
        }
      };
      if (own(stop.writer)) begin(stop.next_written);
      if (!own(stop.reader)) continue;
      begin(stop.next_read);
      for (int i = 0; stop.opens && i < stop.stages; ++i) stop.free->set({i, route.where});
    }
  }
}

void CoreMoves::end_role() {
  for (CoreRoute& route : routes_) {
    for (CoreStop& stop : route.stops) {
      if (stop.is_ring() && stop.opens && own(stop.writer)) {
        for (int i = 0; i < stop.stages; ++i) stop.free->wait({i, route.where});
      }
      stop.next_written = nullptr;
      stop.next_read = nullptr;
    }
  }
}

void CoreMoves::begin_write(CoreStop& stop) {
  if (!own(stop.writer)) return;
  stop.written = stop.next_written ? Index(*stop.next_written) : Index(0);
  if (stop.is_ring()) {
    if (stop.opens) stop.free->wait(*stop.written);
    return;
  }
  if (!core_.unit(stop.writer)->orders_itself) unit_barrier(stop.writer);
}

void CoreMoves::end_write(CoreStop& stop) {
  if (!own(stop.writer) || !stop.is_ring()) return;
  if (stop.closes) stop.full->set(*stop.written);
  if (stop.next_written) *stop.next_written = (*stop.written + 1) % stop.stages;
}

void CoreMoves::begin_read(CoreStop& stop) {
  if (!own(stop.reader)) return;
  stop.read = stop.next_read ? Index(*stop.next_read) : Index(0);
  if (stop.is_ring()) {
    if (stop.opens) stop.full->wait(*stop.read);
    return;
  }
  if (!core_.unit(stop.reader)->orders_itself) unit_barrier(stop.reader);
}

void CoreMoves::end_read(CoreStop& stop) {
  if (!own(stop.reader) || !stop.is_ring()) return;
  if (stop.closes) stop.free->set(*stop.read);
  if (stop.next_read) *stop.next_read = (*stop.read + 1) % stop.stages;
}

std::string CoreMoves::taker(const CoreRoute& route) const {
  return route.end == CoreEnd::vector ? vector_.unit : product_.unit;
}

void CoreMoves::advance(CoreRoute& route) {
  const Tracer::At at(tracer_, route.where, true);
  const std::size_t before = route.start == Start::tensor ? 1 : 0;
  for (std::size_t i = 0; i < route.moves.size(); ++i) {
    const CoreMove& move = *route.moves[i];
    if (!own(move.unit)) continue;
    CoreStop* from = i >= before ? &route.stops[i - before] : nullptr;
    CoreStop* to = i + 1 - before < route.stops.size() ? &route.stops[i + 1 - before] : nullptr;
    if (from != nullptr) begin_read(*from);
    if (to != nullptr) begin_write(*to);
    step(route, move, i == route.turn, from, to);
    if (from != nullptr) end_read(*from);
    if (to != nullptr) end_write(*to);
  }
}

void CoreMoves::step(CoreRoute& route, const CoreMove& move, bool turn, CoreStop* from,
                     CoreStop* to) {
  const bool writes_global = to == nullptr || to->space.empty();
  const CoreStop& held = to == nullptr || to->space.empty() ? *from : *to;
  const bool split = held.extent != held.whole;
  const auto act = [&] {
    if (from == nullptr) {
      const Operation& load = *tiles_.made(route.base);
      const CoreWindow window = (*to->memory)[*to->written];
      const auto bring = [&] {
        zero_tail(load, move, window, split);
        transfer(load, move, held, turn ? window.T() : window, turn, split);
      };
      if (guarded_.count(&load) == 0) return bring();
      return when(*turns_ > 0, bring);
    }
    if (to == nullptr) {
      return transfer(*route.store, move, held, (*from->memory)[*from->read], false, split);
    }
    if (to->space.empty()) {
      return tilewright::move(place(*to, *to->written, held, split), (*from->memory)[*from->read]);
    }
    const CoreWindow window = (*to->memory)[*to->written];
    if (from->space.empty()) {
      return tilewright::move(turn ? window.T() : window, place(*from, *from->read, held, split));
    }
    const CoreWindow source = (*from->memory)[*from->read];
    tilewright::move(window, turn ? source.T() : source);
  };
  const bool shared = writes_global && !split && core_.sequencer(own_)->count > 1 &&
                      !(to != nullptr && to->of_instance);
  if (!shared) return act();
  when(*instance_ == 0, act);
}

TensorView CoreMoves::place(const CoreStop& stop, const Index& stage, const CoreStop& held,
                            bool split) {
  if (stop.of_instance) {
    const Index at = (cta_index() * stop.stages + stage) * instances_ + *instance_;
    return (*stop.place)(at, all, all);
  }
  const int whole = static_cast<int>(stop.whole.rows);
  const int rows = split ? static_cast<int>(held.extent.rows) : whole;
  Index start = (cta_index() * stop.stages + stage) * whole;
  if (split) start = start + *instance_ * rows;
  const int columns = static_cast<int>(stop.whole.columns);
  return (*stop.place)(Block(start, rows, start + rows), Block(Index(0), columns, Index(columns)));
}

std::vector<analysis::AxisCheck> CoreMoves::checks(const Operation& o) const {
  return analysis::axis_checks(o, o.op == Op::load ? 1 : 2, integers_);
}

Index CoreMoves::limit(const Operation& o, std::size_t first, std::size_t axis, bool named) {
  const std::size_t rank = o.attributes.integers(Key::sizes).size();
  const ir::Parameter& tensor = *tile_.parameter_of(o.operands[0]);
  const std::vector<analysis::AxisCheck> checks = named ? this->checks(o) : decltype(checks){};
  const bool is_checked = std::any_of(checks.begin(), checks.end(), [&](const auto& check) {
    return check.axis == axis && check.loaded_end;
  });
  if (is_checked) return values_.number(o, first + rank + axis);
  return min(values_.number(o, first + rank + axis), Index(tensor.shape[axis]));
}

Index CoreMoves::start(const Operation& o, std::size_t first, std::size_t axis, bool split) {
  const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
  const Index begin = values_.number(o, first + axis);
  if (!split || axes_of(sizes).front() != axis) return begin;
  return begin + *instance_ * static_cast<int>(sizes[axis] / parts_);
}

void CoreMoves::zero_tail(const Operation& load, const CoreMove& move, const CoreWindow& window,
                          bool split) {
  const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
  std::optional<Condition> cut;
  const std::vector<std::size_t> axes = axes_of(sizes);
  // An index outside of its axis is an error, which zeros would hide.
  for (const std::size_t axis : axes) {
    Index wanted = start(load, 1, axis, split);
    const std::int64_t size = split && axis == axes.front() ? sizes[axis] / parts_ : sizes[axis];
    const Condition own = limit(load, 1, axis) < wanted + static_cast<int>(size) || wanted < 0;
    cut = cut ? *cut || own : own;
  }
  if (!cut) return;
  when(*cut, [&] {
    const ValueId target = CoreTracing::emit(tracer_, window, "fill", load.where);
    plain(tracer_, Op::core_fill,
          {target, tracer_.number(0, tracer_.type(target).dtype, "fill", load.where)},
          {{Key::unit, move.unit}}, load.where);
    if (!core_.unit(move.unit)->orders_itself) unit_barrier(move.unit);
  });
}

void CoreMoves::transfer(const Operation& o, const CoreMove& move, const CoreStop& held,
                         const CoreWindow& window, bool turned, bool split) {
  const bool loads = o.op == Op::load;
  const std::size_t first = loads ? 1 : 2;
  const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
  const std::vector<std::size_t> axes = axes_of(sizes);
  const auto size_on = [&](std::size_t axis) {
    return split && axis == axes[0] ? sizes[axis] / parts_ : sizes[axis];
  };
  const auto go = [&](const TensorView& view, const CoreWindow& part) {
    loads ? tilewright::move(part, view, o.where) : tilewright::move(view, part, o.where);
  };
  const auto view = [&](const std::optional<Index>& outer) {
    std::vector<Selector> selectors;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (outer && axis == axes[0]) {
        selectors.push_back(Selector(*outer));
      } else if (sizes[axis] == 0) {
        selectors.push_back(Selector(values_.number(o, first + axis)));
      } else {
        selectors.push_back(
            Selector(Block(start(o, first, axis, split), static_cast<int>(size_on(axis)),
                           limit(o, first, axis, true))));
      }
    }
    return TensorView(values_.tensor(o.operands[0]).handle(), std::move(selectors), o.where);
  };
  std::vector<std::int64_t> box;
  for (const std::size_t axis : axes) box.push_back(size_on(axis));
  const int rows = window.row_count(), columns = window.column_count();
  const Extent2 seen{rows, columns};
  const bool whole = static_cast<std::int64_t>(box.size()) <= ir::kBoxAxes &&
                     ir::box_extent(box, seen) == seen && ir::box_matrices(box) <= move.matrices;
  if (whole) return go(view(std::nullopt), window);
  const std::int64_t count = box.front();
  const int each = rows / static_cast<int>(count);
  check_pieces(o, held, turned, count, each);
  const Index begin = start(o, first, axes[0], split);
  for (Index i : range(static_cast<int>(count))) {
    const Index at = begin + i;
    // One in front of the tensor is an error only where an integer of the launch puts it there.
    Condition exists = at < limit(o, first, axes[0], true);
    if (!integers_.nonnegative(o.operands[first + axes[0]])) exists = exists && at >= 0;
    when(exists, [&] { go(view(at), window.part(i * each, 0, each, columns)); });
  }
}

void CoreMoves::check_pieces(const Operation& o, const CoreStop& held, bool turned,
                             std::int64_t count, int rows) const {
  const target::Matrix whole{held.extent.rows, held.extent.columns, held.dtype};
  for (std::int64_t i = 1; i < count; ++i) {
    const target::CoreProblem start = target::check_start(
        *core_.space(held.space), whole, turned ? 0 : i * rows, turned ? i * rows : 0);
    if (start.none()) continue;
    refuse(o, "a tile with rows of several axes goes piece by piece: " + start.problem, start.fix);
  }
}

}  // namespace tilewright::schedules
