#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "analysis/loaded_integers.h"
#include "schedules/core_moves.h"

// A load comes after the stores that stand before it, though these are other units' work.
namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::ValueId;
using Start = CoreRoute::Start;

namespace {

using Access = CorePlan::Access;

void accesses_of(const ir::Block& block, std::vector<CorePlan::Place>& around,
                 std::map<ValueId, std::vector<Access>>& of_tensor) {
  for (const Operation& o : block.body) {
    if (o.op == Op::load || o.op == Op::store) {
      const auto loop = std::find_if(around.begin(), around.end(),
                                     [](const auto& place) { return place.o->op == Op::for_loop; });
      of_tensor[o.operands[0]].push_back({&o, loop == around.end() ? nullptr : loop->o, around});
    }
    for (const ir::Block& inner : o.blocks) {
      around.push_back({&o, &inner});
      accesses_of(inner, around, of_tensor);
      around.pop_back();
    }
  }
}

// Whether a store may stand before a load, also in an earlier turn of a loop.
bool is_reloaded(const std::vector<Access>& accesses) {
  bool stored = false;
  std::set<const Operation*> loops;
  for (const Access& each : accesses) {
    stored = stored || each.o->op == Op::store;
    if (each.o->op == Op::load && stored) return true;
    if (each.loop == nullptr) continue;
    if (each.o->op == Op::load) loops.insert(each.loop);
    if (each.o->op == Op::store && loops.count(each.loop) != 0) return true;
  }
  return false;
}

// Of one condition not both are done.
bool exclude_each_other(const Access& a, const Access& b) {
  for (std::size_t i = 0; i < std::min(a.around.size(), b.around.size()); ++i) {
    if (a.around[i].o != b.around[i].o) return false;
    if (a.around[i].block != b.around[i].block) return true;
  }
  return false;
}

// Whether they lie so far from each other on an axis, whatever the kernel computes.
bool are_apart(const Access& a, const Access& b, const analysis::LoadedIntegers& integers) {
  const std::vector<std::int64_t>& own = a.o->attributes.integers(ir::Key::sizes);
  const std::vector<std::int64_t>& other = b.o->attributes.integers(ir::Key::sizes);
  for (std::size_t axis = 0; axis < own.size(); ++axis) {
    const auto distance = integers.distance(a.o->operands[2 + axis], b.o->operands[2 + axis]);
    if (!distance) continue;
    const std::int64_t size = std::max<std::int64_t>(*distance > 0 ? own[axis] : other[axis], 1);
    if (std::abs(*distance) >= size) return true;
  }
  return false;
}

}  // namespace

// Whether what is computed in the loop decides where it lies: then it moves on with each turn.
bool CorePlan::moves_with(const ir::Block& body, const Operation& store) const {
  std::set<ValueId> asked;
  const std::function<bool(ValueId)> depends = [&](ValueId value) {
    if (!asked.insert(value).second) return false;
    const std::vector<ValueId>& own = body.arguments;
    if (std::find(own.begin(), own.end(), value) != own.end()) return true;
    const Operation* made = tiles_.made(value);
    return made != nullptr && std::any_of(made->operands.begin(), made->operands.end(), depends);
  };
  return std::any_of(store.operands.begin() + 2, store.operands.end(), depends);
}

// Whether a store may write over what another one of the same block has written.
bool CorePlan::is_stored_over(const std::vector<Access>& accesses) const {
  std::vector<const Access*> stores;
  for (const Access& each : accesses) {
    if (each.o->op == Op::store) stores.push_back(&each);
  }
  if (stores.empty()) return false;
  for (const Access* each : stores) {
    for (const Place& place : each->around) {
      const bool turns = place.o->op == Op::for_loop || place.o->op == Op::while_loop;
      if (turns && !moves_with(*place.block, *each->o)) return true;
    }
  }
  if (stores.size() == 1) return false;
  const analysis::LoadedIntegers integers(tile_);
  for (std::size_t i = 0; i < stores.size(); ++i) {
    for (std::size_t k = i + 1; k < stores.size(); ++k) {
      const bool apart =
          exclude_each_other(*stores[i], *stores[k]) || are_apart(*stores[i], *stores[k], integers);
      if (!apart) return true;
    }
  }
  return false;
}

bool CorePlan::is_crossed(const std::vector<Access>& accesses) const {
  if (instances_ == 1) return false;
  const auto is_of_own_rows = [&](const Operation& load, const Operation& store) {
    const ValueId stored = tiles_.seen(store.operands[1]).base;
    return std::equal(load.operands.begin() + 1, load.operands.end(), store.operands.begin() + 2,
                      store.operands.end()) &&
           load.attributes.integers(ir::Key::sizes) == store.attributes.integers(ir::Key::sizes) &&
           is_split(tiles_.extent(load.results[0])) && is_split(tiles_.extent(stored));
  };
  for (const Access& load : accesses) {
    for (const Access& store : accesses) {
      if (load.o->op == Op::load && store.o->op == Op::store && !is_of_own_rows(*load.o, *store.o))
        return true;
    }
  }
  return false;
}

void CorePlan::find_orders() {
  std::map<ValueId, std::vector<Access>> of_tensor;
  std::vector<Place> around;
  accesses_of(tile_.body, around, of_tensor);
  const auto units_of = [&](const Operation& o) {
    std::set<std::string> units;
    for (const CoreRoute& route : routes_) {
      if (route.store == &o) units.insert(route.moves.back()->unit);
      const bool loads = o.op == Op::load && route.start == Start::tensor;
      if (loads && route.base == o.results[0]) units.insert(route.moves.front()->unit);
    }
    return units;
  };
  for (const auto& [tensor, accesses] : of_tensor) {
    // What one instance of a sequencer stores another one may still load, unless each has its rows.
    const bool comes_back = is_reloaded(accesses);
    const bool is_loaded = comes_back || is_crossed(accesses);
    if (!is_loaded && !is_stored_over(accesses)) continue;
    if (is_loaded) reloaded_.insert(tensor);
    std::set<std::string> load, store;
    for (const Access& each : accesses) {
      const std::set<std::string> units = units_of(*each.o);
      (each.o->op == Op::load ? load : store).insert(units.begin(), units.end());
    }
    for (const Access& each : accesses) {
      if (!comes_back && each.o->op == Op::load) continue;
      std::set<std::string> others = store;
      if (is_loaded && each.o->op == Op::store) others.insert(load.begin(), load.end());
      for (const std::string& own : units_of(*each.o)) {
        for (const std::string& other : others) order_units(*each.o, other, own);
      }
    }
  }
}

void CorePlan::order_units(const Operation& o, const std::string& before, const std::string& own) {
  const bool crosses = instances_ > 1 && before != own && owner(before) == owner(own) &&
                       owner(own) == owner(vector_.unit);
  std::vector<std::string> units = find_order(core_, before, own, crosses);
  if (units.empty()) {
    refuse(o, "no events lead from " + before + " to " + own +
                  ", which order a load and a store of one tensor");
  }
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    hops_.insert({units[i], units[i + 1]});
  }
  for (const std::string& unit : units) used_.insert(owner(unit));
  orders_[&o].push_back(std::move(units));
}

void CoreMoves::order(const Operation& o) {
  const auto found = orders_.find(&o);
  if (found == orders_.end()) return;
  const auto tell = [&](const CoreEvent& event, const std::string& from, const std::string& to) {
    if (own(from)) event.set({0, o.where});
    if (own(to)) event.wait({0, o.where});
  };
  for (const std::vector<std::string>& units : found->second) {
    const bool waits = units.size() == 1 && own(units[0]) && !core_.unit(units[0])->orders_itself;
    if (waits) unit_barrier(units[0]);
    for (std::size_t i = 0; i + 1 < units.size(); ++i) {
      tell(hop_events_.at({units[i], units[i + 1]}).there, units[i], units[i + 1]);
    }
    for (std::size_t i = units.size() - 1; i > 0; --i) {
      tell(hop_events_.at({units[i - 1], units[i]}).back, units[i], units[i - 1]);
    }
  }
}

}  // namespace tilewright::schedules
