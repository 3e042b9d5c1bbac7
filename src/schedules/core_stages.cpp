#include <algorithm>
#include <utility>

#include "schedules/core_plan.h"
#include "target/core_rules.h"

// How many stages a memory has, what runs a step ahead, and which loads share events.
namespace tilewright::schedules {

using ir::Extent2;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using Start = CoreRoute::Start;

void CorePlan::stages_ahead(const ir::Block& block) {
  for (const Operation& o : block.body) {
    for (const ir::Block& inner : o.blocks) stages_ahead(inner);
    if (o.op != Op::for_loop || !tiles_.has_tiles(o)) continue;
    if (std::any_of(o.results.begin(), o.results.end(),
                    [&](ValueId result) { return !tiles_.is_tile(result); })) {
      continue;
    }
    std::set<const Operation*> ahead;
    for (const Operation& inner : o.blocks[0].body) {
      if (inner.op == Op::load && reloaded_.count(inner.operands[0]) == 0) ahead.insert(&inner);
      if (inner.op != Op::dot || tiles_.adds_by_itself(inner)) continue;
      const bool early =
          std::all_of(inner.operands.begin(), inner.operands.end(), [&](ValueId operand) {
            const ValueId base = tiles_.seen(operand).base;
            const Operation* made = tiles_.made(base);
            return made != nullptr && made->op == Op::load &&
                   (ahead.count(made) != 0 || tiles_.at_level(base, &inner) != &inner);
          });
      if (early) ahead.insert(&inner);
    }
    // What a product takes early and another one late is held from one turn to the next.
    const auto is_held = [&](ValueId operand, CoreEnd end) {
      const CoreTiles::Seen seen = tiles_.seen(operand);
      if (ahead.count(tiles_.made(seen.base)) == 0) return false;
      const std::vector<CoreUse>& uses = tiles_.uses(seen.base);
      return std::any_of(uses.begin(), uses.end(), [&](const CoreUse& use) {
        return use.end == end && use.turned == seen.turned &&
               ahead.count(tiles_.at_level(seen.base, use.by)) == 0;
      });
    };
    while (std::erase_if(ahead, [&](const Operation* each) {
             return each->op == Op::dot && (is_held(each->operands[0], CoreEnd::left) ||
                                            is_held(each->operands[1], CoreEnd::right));
           }) > 0) {
    }
    if (!ahead.empty()) ahead_[&o] = std::move(ahead);
  }
}

void CorePlan::choose_stages() {
  const int most = tile_.schedule.stages.value_or(2);
  for (CoreRoute& route : routes_) {
    for (CoreStop& stop : route.stops) {
      stop.stages = !stop.is_ring() || tiles_.is_of_kernel(route.base) ? 1 : most;
    }
  }
  const auto reduce = [&](const std::function<bool(const CoreStop&)>& counts,
                          const std::function<std::int64_t()>& over) {
    while (over() > 0) {
      CoreStop* largest = nullptr;
      for (CoreRoute& route : routes_) {
        for (CoreStop& stop : route.stops) {
          if (!counts(stop) || stop.stages == 1) continue;
          if (largest == nullptr || bytes(stop) > bytes(*largest)) largest = &stop;
        }
      }
      if (largest == nullptr) return;
      --largest->stages;
    }
  };
  for (const target::CoreEventPair& pair : core_.events) {
    const auto counts = [&](const CoreStop& stop) {
      return stop.is_ring() && ((stop.writer == pair.from && stop.reader == pair.to) ||
                                (stop.writer == pair.to && stop.reader == pair.from));
    };
    const auto over = [&] {
      std::int64_t ids = -pair.ids;
      for (const CoreRoute& route : routes_) {
        for (const CoreStop& stop : route.stops)
          ids += counts(stop) && stop.opens ? stop.stages : 0;
      }
      ids += static_cast<std::int64_t>(hops_.count({pair.from, pair.to}) +
                                       hops_.count({pair.to, pair.from}));
      return ids;
    };
    reduce(counts, over);
    for (bool joined = true; joined && over() > 0;) joined = join_loads(tile_.body, counts);
  }
  for (const target::CoreSpace& space : core_.spaces) {
    const auto counts = [&](const CoreStop& stop) { return stop.space == space.name; };
    reduce(counts, [&] {
      std::int64_t sum = -space.bytes;
      for (const CoreBuffer& buffer : buffers_) {
        if (space.name != vector_.writes.front()) break;
        const Extent2 part = part_of(buffer.extent);
        sum += target::matrix_bytes(space, {part.rows, buffer.pitch, buffer.dtype});
      }
      for (const CoreRoute& route : routes_) {
        for (const CoreStop& stop : route.stops) {
          if (counts(stop)) sum += stop.stages * bytes(stop);
        }
      }
      return sum;
    });
  }
  // What is made a step ahead and taken later needs a second place.
  std::erase_if(ahead_, [&](const auto& each) {
    return std::any_of(routes_.begin(), routes_.end(), [&](const CoreRoute& route) {
      const Operation* made = tiles_.made(route.base);
      return each.second.count(made) != 0 && route.stops.back().stages < 2 &&
             (each.second.count(route.first) == 0 || route.load != nullptr);
    });
  });
}

// Loads of a block that nothing stores between, and whose places are known at the first of them.
bool CorePlan::join_loads(const ir::Block& block,
                          const std::function<bool(const CoreStop&)>& counts) {
  std::vector<CoreRoute*> run;
  // The last that has events of its own gives them up for those of the one before.
  const auto join = [&] {
    for (std::size_t i = run.size(); i-- > 1;) {
      if (!run[i]->stops[0].opens) continue;
      CoreRoute& before = *run[i - 1];
      before.stops[0].closes = run[i]->stops[0].opens = false;
      const Operation *first = before.first, *last = before.last;
      for (std::size_t k = i; k < run.size(); ++k) {
        if (tiles_.comes_before(run[k]->first, first)) first = run[k]->first;
        if (tiles_.comes_before(last, run[k]->last)) last = run[k]->last;
      }
      const Operation* load = tiles_.made(before.base);
      for (std::size_t k = i - 1; k < run.size(); ++k) {
        run[k]->first = first;
        run[k]->last = last;
        run[k]->load = load;
      }
      return true;
    }
    return false;
  };
  for (const Operation& o : block.body) {
    if (o.op == Op::store || (!o.blocks.empty() && tiles_.has_tiles(o))) {
      if (join()) return true;
      run.clear();
      for (const ir::Block& inner : o.blocks) {
        if (join_loads(inner, counts)) return true;
      }
    }
    if (o.op != Op::load) continue;
    const bool is_known =
        run.empty() || std::all_of(o.operands.begin(), o.operands.end(), [&](ValueId each) {
          const Operation* made = tiles_.made(each);
          return made == nullptr || tiles_.comes_before(made, tiles_.made(run.front()->base));
        });
    if (!is_known) {
      if (join()) return true;
      run.clear();
    }
    std::vector<CoreRoute*> own;
    for (CoreRoute& route : routes_) {
      if (route.base == o.results[0] && route.start == Start::tensor) own.push_back(&route);
    }
    const bool fits = reloaded_.count(o.operands[0]) == 0 && own.size() == 1 &&
                      own[0]->stops.size() == 1 && counts(own[0]->stops[0]) &&
                      own[0]->first != nullptr;
    if (fits) run.push_back(own[0]);
  }
  return join();
}

std::int64_t CorePlan::bytes(const CoreStop& stop) const {
  const target::CoreSpace* space = core_.space(stop.space);
  return space == nullptr
             ? 0
             : target::matrix_bytes(*space, {stop.extent.rows, stop.extent.columns, stop.dtype});
}

}  // namespace tilewright::schedules
