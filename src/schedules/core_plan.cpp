#include "schedules/core_plan.h"

#include <algorithm>
#include <utility>

#include "target/core_rules.h"
#include "target/target.h"

namespace tilewright::schedules {

using ir::Extent2;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using target::CoreMove;
using Start = CoreRoute::Start;

CorePlan::CorePlan(const ir::Kernel& tile)
    : tile_(tile),
      core_(*target::target_of(tile).core),
      product_(core_.products.front()),
      vector_(*std::find_if(core_.functions.begin(), core_.functions.end(),
                            [](const auto& each) { return !each.only_fills; })),
      tiles_(tile_, core_),
      instances_(core_.sequencer(owner(vector_.unit))->count) {
  ir::for_each(tile_.body, [this](const Operation& o) {
    const bool reduces_rows = o.op == Op::reduce && tile_.type(o.operands[0]).shape.size() > 2;
    if (!reduces_rows && !tiles_.stretches_inside(o)) return;
    by_rows_.insert(o.results[0]);
    for (const ValueId operand : o.operands) by_rows_.insert(tiles_.seen(operand).base);
  });
  parts_ = splits(tile_.body) ? instances_ : 1;
  routes(tile_.body);
  find_orders();
  stages_ahead(tile_.body);
  plan(tile_.body);
  choose_stages();
  if (!buffers_.empty() || used_.empty()) used_.insert(owner(vector_.unit));
}

std::string CorePlan::stages_text() const {
  std::string text;
  for (const CoreRoute& route : routes_) {
    for (const CoreStop& stop : route.stops) {
      text += (text.empty() ? "" : ", ") + stop.name + " " + std::to_string(stop.stages);
    }
  }
  return text.empty() ? "none" : text;
}

void CorePlan::refuse(const Operation& o, const std::string& problem,
                      const std::string& fix) const {
  Diagnostic(o.where, "schedule for " + tile_.target + ": " + problem)
      .note(tile_.where, "\"" + tile_.name + "\" begins")
      .fix(fix)
      .raise();
}

void CorePlan::refuse_turned(const Operation& o) const {
  std::string ways;
  for (const CoreMove& move : core_.moves) {
    if (!move.transposes) continue;
    ways += (ways.empty() ? "" : ", ") + core_.space_name(move.from) + " to " +
            core_.space_name(move.to) + " (" + move.unit + ")";
  }
  refuse(o,
         "vector work on a tile that is transposed: what was computed in " +
             vector_.writes.front() + " is read as it lies",
         "swap a product's operands, so that it gives the tile as it is taken; what transposes is "
         "the way from " +
             ways);
}

std::string CorePlan::owner(const std::string& unit) const { return core_.unit(unit)->sequencer; }

bool CorePlan::splits(const ir::Block& block) const {
  if (instances_ == 1) return false;
  for (const Operation& o : block.body) {
    for (const ValueId result : o.results) {
      if (!tiles_.is_tile(result)) continue;
      const Extent2 extent = tiles_.extent(result);
      if (extent.rows > 1 && extent.rows % instances_ != 0) return false;
    }
    if (o.op == Op::reduce) {
      const std::size_t rank = tile_.type(o.operands[0]).shape.size();
      if (o.attributes.integer(Key::axis) + 1 != static_cast<std::int64_t>(rank)) return false;
    }
    if (tiles_.stretches_inside(o)) return false;
    // Each has the elements of its own rows.
    if (tiles_.moves_elements(o) && (tiles_.extent(tiles_.seen(o.operands[0]).base).rows == 1) !=
                                        (tiles_.extent(o.results[0]).rows == 1)) {
      return false;
    }
    if (o.op == Op::load || o.op == Op::store) {
      // Rows of several axes are split along the first.
      const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
      const Extent2 extent =
          tiles_.extent(tiles_.seen(o.op == Op::load ? o.results[0] : o.operands[1]).base);
      const std::vector<std::size_t> axes = axes_of(sizes);
      if (extent.rows > 1 && sizes[axes[0]] % instances_ != 0) return false;
    }
    for (const ir::Block& inner : o.blocks) {
      if (!splits(inner)) return false;
    }
  }
  return true;
}

std::vector<std::size_t> CorePlan::axes_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != 0) axes.push_back(axis);
  }
  return axes;
}

bool CorePlan::is_split(Extent2 extent) const { return parts_ > 1 && extent.rows > 1; }

Extent2 CorePlan::part_of(Extent2 extent) const {
  return is_split(extent) ? Extent2{extent.rows / parts_, extent.columns} : extent;
}

void CorePlan::routes(const ir::Block& block) {
  for (const Operation& o : block.body) {
    if (o.op == Op::load) {
      for (const ValueId base : o.results) route_uses(o, base, Start::tensor);
    } else if (o.op == Op::dot) {
      const ValueId base = tiles_.product_of(o);
      if (tiles_.adds_by_itself(o)) {
        add_route(o, base, Start::product, CoreEnd::vector, false, nullptr);
        route_uses(o, base, Start::vector);
      } else if (tiles_.is_used(base, CoreEnd::vector)) {
        add_route(o, base, Start::product, CoreEnd::vector, false, nullptr);
        route_uses(o, base, Start::vector);
      } else {
        route_uses(o, base, Start::product);
      }
    } else if (!tiles_.accumulates(o)) {
      if (tiles_.moves_elements(o)) add_reshape(o);
      for (const ValueId result : o.results) {
        if (tiles_.is_tile(result) && tiles_.seen(result).base == result) {
          route_uses(o, result, Start::vector);
        }
      }
      if (o.op == Op::for_loop) {
        for (const ValueId argument : o.blocks[0].arguments) {
          if (tiles_.is_tile(argument)) route_uses(o, argument, Start::vector);
        }
      }
    }
    for (const ir::Block& inner : o.blocks) routes(inner);
  }
}

void CorePlan::route_uses(const Operation& o, ValueId base, Start start) {
  // What is stored as it was loaded goes by the vector unit.
  if (start == Start::tensor) route_uses(o, base, Start::vector, CoreEnd::tensor);
  for (const CoreUse& use : tiles_.uses(base)) {
    if (start == Start::tensor && use.end == CoreEnd::tensor) {
      if (find_route(base, CoreEnd::vector, false) == nullptr) {
        add_route(o, base, start, CoreEnd::vector, false, nullptr);
      }
      continue;
    }
    if (start == Start::vector && use.end == CoreEnd::vector) {
      if (use.turned) refuse_turned(*use.by);
      continue;
    }
    const Operation* store = use.end == CoreEnd::tensor ? use.by : nullptr;
    if (store == nullptr && find_route(base, use.end, use.turned) != nullptr) continue;
    add_route(o, base, start, use.end, use.turned, store);
  }
}

void CorePlan::route_uses(const Operation& o, ValueId base, Start start, CoreEnd end) {
  for (const CoreUse& use : tiles_.uses(base)) {
    if (use.end == end) add_route(o, base, start, end, use.turned, use.by);
  }
}

CoreRoute* CorePlan::find_route(ValueId base, CoreEnd end, bool turned) {
  for (CoreRoute& route : routes_) {
    if (route.base == base && route.end == end && route.turned == turned &&
        end != CoreEnd::tensor) {
      return &route;
    }
  }
  return nullptr;
}

void CorePlan::add_route(const Operation& o, ValueId base, Start start, CoreEnd end, bool turned,
                         const Operation* store) {
  CoreRoute route;
  route.start = start;
  route.end = end;
  route.base = base;
  route.store = store;
  route.turned = turned;
  route.where = store != nullptr ? store->where : o.where;
  std::string from, before, after;
  std::vector<std::string> goals{""};
  if (start == Start::product) from = product_.result, before = product_.unit;
  if (start == Start::vector) from = vector_.writes.front(), before = vector_.unit;
  if (end == CoreEnd::left) goals = {product_.left}, after = product_.unit;
  if (end == CoreEnd::right) goals = {product_.right}, after = product_.unit;
  if (end == CoreEnd::vector) goals = vector_.reads, after = vector_.unit;
  const bool turns = turned != (end == CoreEnd::left && product_.left_transposed);
  const auto way = find_way(core_, from, before, goals, after, turns);
  if (!way) {
    std::string to;
    for (const std::string& goal : goals) to += (to.empty() ? "" : " or ") + core_.space_name(goal);
    refuse(store != nullptr ? *store : o, "no way leads from " + core_.space_name(from) + " to " +
                                              to + (turns ? ", transposed" : ""));
  }
  route.moves = way->moves;
  route.turn = way->turn;
  make_stops(route, o, from, before, after);
  // What takes it, at the level of what makes it.
  for (const CoreUse& use : tiles_.uses(base)) {
    if (use.end != end || use.turned != turned) continue;
    const Operation* at = tiles_.at_level(base, use.by);
    if (route.first == nullptr || tiles_.comes_before(at, route.first)) route.first = at;
    if (route.last == nullptr || tiles_.comes_before(route.last, at)) route.last = at;
  }
  // A loaded tile that is stored is taken from where the vector unit has it.
  if (start != Start::vector && end == CoreEnd::vector) {
    for (const CoreUse& use : tiles_.uses(base)) {
      if (use.end != CoreEnd::tensor) continue;
      const Operation* at = tiles_.at_level(base, use.by);
      if (route.first == nullptr || tiles_.comes_before(at, route.first)) route.first = at;
      if (route.last == nullptr || tiles_.comes_before(route.last, at)) route.last = at;
    }
  }
  if (start == Start::product && tiles_.adds_by_itself(o)) route.first = route.last = nullptr;
  for (const CoreStop& stop : route.stops) {
    used_.insert(owner(stop.writer));
    used_.insert(owner(stop.reader));
  }
  routes_.push_back(std::move(route));
}

void CorePlan::add_reshape(const Operation& o) {
  const CoreTiles::Seen from = tiles_.seen(o.operands[0]);
  if (from.turned) refuse_turned(o);
  const Extent2 own = part_of(tiles_.extent(from.base)),
                wanted = part_of(tiles_.extent(o.results[0]));
  const auto is_vector = [](Extent2 extent) { return std::min(extent.rows, extent.columns) == 1; };
  if (!is_vector(own) && !is_vector(wanted)) {
    refuse(o,
           "a reshape of a tile of " + ir::to_string(tiles_.extent(from.base)) +
               ", which is computed, to " + ir::to_string(tiles_.extent(o.results[0])) +
               ": neither is a row or a column",
           "reshape to a row or a column alone; or load the elements in the other shape");
  }
  const std::string& space = vector_.writes.front();
  const auto back = find_way(core_, "", "", vector_.reads, vector_.unit, false);
  const auto away =
      back ? find_way(core_, space, vector_.unit, {""}, back->moves.front()->unit, false)
           : std::nullopt;
  if (!away) refuse(o, "no way leads from " + space + " to global memory and back");
  CoreRoute route;
  route.start = Start::reshape;
  route.end = CoreEnd::vector;
  route.base = o.results[0];
  route.where = o.where;
  route.moves = away->moves;
  route.moves.insert(route.moves.end(), back->moves.begin(), back->moves.end());
  route.turn = SIZE_MAX;
  const std::string name = "v" + std::to_string(route.base) + "_" + std::to_string(routes_.size());
  for (std::size_t i = 0; i <= route.moves.size(); ++i) {
    CoreStop stop;
    stop.space = i == 0 ? space : route.moves[i - 1]->to;
    stop.name = name + "_" + core_.space_name(stop.space) + std::to_string(i);
    stop.dtype = tiles_.dtype(route.base);
    stop.extent = i <= away->moves.size() ? own : wanted;
    stop.of_instance = stop.space.empty();
    if (stop.of_instance && is_vector(own)) stop.extent = wanted;
    stop.whole = stop.extent;
    stop.writer = i == 0 ? vector_.unit : route.moves[i - 1]->unit;
    stop.reader = i < route.moves.size() ? route.moves[i]->unit : vector_.unit;
    used_.insert(owner(stop.writer));
    used_.insert(owner(stop.reader));
    route.stops.push_back(std::move(stop));
  }
  routes_.push_back(std::move(route));
}

void CorePlan::make_stops(CoreRoute& route, const Operation& o, const std::string& from,
                          const std::string& before, const std::string& after) {
  const std::string name = "v" + std::to_string(route.base) + "_" + std::to_string(routes_.size());
  Extent2 extent = tiles_.extent(route.base);
  const DType wanted = tiles_.dtype(route.base);
  DType dtype = route.start == Start::product ? tile_.type(o.results[0]).dtype : wanted;
  const auto add = [&](const std::string& space, const std::string& writer,
                       const std::string& reader) {
    CoreStop stop;
    stop.space = space;
    stop.name = name + "_" + core_.space_name(space) + std::to_string(route.stops.size());
    stop.dtype = dtype;
    stop.whole = extent;
    const target::CoreSpace* record = core_.space(space);
    const bool own = record != nullptr && record->sequencer == owner(vector_.unit);
    stop.extent = own ? part_of(extent) : extent;
    stop.writer = writer;
    stop.reader = reader;
    if (record != nullptr && record->partitions > 1 && extent.rows > record->partitions) {
      refuse(o,
             "a tile of " + ir::to_string(tiles_.extent(route.base)) + " takes " +
                 std::to_string(extent.rows) + " rows of " + space + ", which has " +
                 std::to_string(record->partitions) + " partitions of a row each",
             "take that axis in blocks of " + std::to_string(record->partitions) + " at most");
    }
    route.stops.push_back(std::move(stop));
  };
  const auto unit_behind = [&](std::size_t i) {
    return i < route.moves.size() ? route.moves[i]->unit : after;
  };
  if (route.start != Start::tensor) add(from, before, unit_behind(0));
  for (std::size_t i = 0; i < route.moves.size(); ++i) {
    const CoreMove& move = *route.moves[i];
    if (i == route.turn) extent = ir::transposed(extent);
    const std::pair conversion{dtype, wanted};
    if (std::find(move.conversions.begin(), move.conversions.end(), conversion) !=
        move.conversions.end()) {
      dtype = wanted;
    }
    const bool ends = route.end == CoreEnd::tensor && i + 1 == route.moves.size();
    used_.insert(owner(move.unit));
    if (!ends) add(move.to, move.unit, unit_behind(i + 1));
  }
  if (dtype != wanted) {
    refuse(o,
           "no way makes " + std::string(name_of(wanted)) + " of " + std::string(name_of(dtype)));
  }
}

CoreRoute* CorePlan::only_route(ValueId base) {
  if (tiles_.is_used(base, CoreEnd::vector) || tiles_.is_used(base, CoreEnd::tensor)) {
    return nullptr;
  }
  CoreRoute* only = nullptr;
  for (CoreRoute& route : routes_) {
    if (route.base != base || route.start != Start::vector) continue;
    if (only != nullptr) return nullptr;
    only = &route;
  }
  return only;
}

std::int64_t CorePlan::pitch_of(ValueId base) const {
  const Extent2 extent = tiles_.extent(base);
  target::Matrix matrix{extent.rows, extent.columns, tiles_.dtype(base)};
  if (by_rows_.count(base) == 0 || extent.rows == 1) return matrix.columns;
  const target::CoreSpace& space = *core_.space(vector_.writes.front());
  while (!target::check_start(space, matrix, 1, 0).none()) ++matrix.columns;
  return matrix.columns;
}

int CorePlan::take(ValueId base) {
  const Extent2 extent = tiles_.extent(base);
  const DType dtype = tiles_.dtype(base);
  const std::int64_t pitch = pitch_of(base);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (free_.count(static_cast<int>(i)) == 0) continue;
    const CoreBuffer& buffer = buffers_[i];
    if (buffer.extent != extent || buffer.dtype != dtype || buffer.pitch != pitch) continue;
    free_.erase(static_cast<int>(i));
    return static_cast<int>(i);
  }
  const Operation* made = tiles_.made(base);
  buffers_.push_back(
      {extent, dtype, pitch, false, made != nullptr ? made->where : tile_.where, nullptr});
  return static_cast<int>(buffers_.size()) - 1;
}

bool CorePlan::dies_at(ValueId base, const Operation& o) const {
  return buffer_.count(base) != 0 && tiles_.last_use(base) == &o;
}

void CorePlan::bury(const Operation& o, const std::set<int>& kept) {
  for (const auto& [base, buffer] : buffer_) {
    if (buried_.count(base) != 0 || tiles_.last_use(base) != &o) continue;
    buried_.insert(base);
    if (!buffers_[buffer].reserved && kept.count(buffer) == 0) free_.insert(buffer);
  }
}

int CorePlan::in_place(const Operation& o, const std::vector<ValueId>& operands, ValueId result) {
  for (const ValueId operand : operands) {
    const ValueId base = tiles_.seen(operand).base;
    if (!dies_at(base, o)) continue;
    const CoreBuffer& buffer = buffers_[buffer_.at(base)];
    if (buffer.extent == tiles_.extent(result) && buffer.dtype == tiles_.dtype(result) &&
        buffer.pitch == pitch_of(result)) {
      return buffer_.at(base);
    }
  }
  return take(result);
}

bool CorePlan::is_vector_work(const Operation& o) const {
  if (o.op == Op::dot) return tiles_.adds_by_itself(o);
  return o.results.size() == 1 && tiles_.is_tile(o.results[0]) &&
         tiles_.seen(o.results[0]).base == o.results[0] && o.op != Op::load && o.blocks.empty() &&
         !tiles_.is_number(o.results[0]);
}

void CorePlan::plan(const ir::Block& block) {
  for (const Operation& o : block.body) {
    std::set<int> kept;
    const auto hold = [&](ValueId result, int buffer) {
      buffer_[result] = buffer;
      free_.erase(buffer);
      kept.insert(buffer);
    };
    if (is_vector_work(o)) {
      const ValueId result = o.results[0];
      if (only_route(result) == nullptr) {
        const bool elementwise = ir::info(o.op).elementwise() || o.op == Op::dot;
        std::vector<ValueId> operands = o.operands;
        if (o.op == Op::dot) operands = {o.operands[2]};
        hold(result, elementwise ? in_place(o, operands, result) : take(result));
      }
    } else if (o.op == Op::for_loop && tiles_.accumulates(o)) {
      plan(o.blocks[0]);
    } else if (o.op == Op::for_loop && tiles_.has_tiles(o)) {
      plan_loop(o, hold);
    } else if (o.op == Op::if_then && tiles_.has_tiles(o)) {
      for (const ValueId result : o.results) {
        if (tiles_.is_tile(result)) hold(result, take(result));
      }
      for (const ir::Block& inner : o.blocks) plan(inner);
    } else if (o.op == Op::while_loop && tiles_.has_tiles(o)) {
      refuse(o, "a loop that ends by a condition, with tiles");
    }
    bury(o, kept);
  }
}

void CorePlan::plan_loop(const Operation& o, const std::function<void(ValueId, int)>& hold) {
  const ir::Block& body = o.blocks[0];
  std::vector<int> own;
  for (std::size_t i = 0; i < o.results.size(); ++i) {
    if (!tiles_.is_tile(o.results[i])) continue;
    const int buffer = take(o.results[i]);
    buffers_[buffer].reserved = true;
    own.push_back(buffer);
    buffer_[body.arguments[1 + i]] = buffer;
  }
  plan(body);
  for (std::size_t i = 0, next = 0; i < o.results.size(); ++i) {
    if (!tiles_.is_tile(o.results[i])) continue;
    buffers_[own[next]].reserved = false;
    hold(o.results[i], own[next++]);
  }
}

}  // namespace tilewright::schedules
