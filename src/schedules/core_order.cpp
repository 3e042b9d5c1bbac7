#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "schedules/core_moves.h"

// A load comes after the stores that stand before it, though these are other units' work.
namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::ValueId;
using Start = CoreRoute::Start;

namespace {

using Access = CorePlan::Access;

void accesses_of(const ir::Block& block, const Operation* loop,
                 std::map<ValueId, std::vector<Access>>& of_tensor) {
  for (const Operation& o : block.body) {
    if (o.op == Op::load || o.op == Op::store) of_tensor[o.operands[0]].push_back({&o, loop});
    const Operation* around = loop == nullptr && o.op == Op::for_loop ? &o : loop;
    for (const ir::Block& inner : o.blocks) accesses_of(inner, around, of_tensor);
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

}  // namespace

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
  accesses_of(tile_.body, nullptr, of_tensor);
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
    if (!comes_back && !is_crossed(accesses)) continue;
    reloaded_.insert(tensor);
    std::set<std::string> load, store;
    for (const Access& each : accesses) {
      const std::set<std::string> units = units_of(*each.o);
      (each.o->op == Op::load ? load : store).insert(units.begin(), units.end());
    }
    for (const Access& each : accesses) {
      if (!comes_back && each.o->op == Op::load) continue;
      std::set<std::string> others = store;
      if (each.o->op == Op::store) others.insert(load.begin(), load.end());
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
