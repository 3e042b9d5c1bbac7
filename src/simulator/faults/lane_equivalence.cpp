#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <tuple>

#include "simulator/faults/equivalence.h"

// What a warp_sync orders: what lanes do before it with what others do behind it.
namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

namespace {

// What one lane or all lanes do to a place, which is an allocation, a tensor or an array of
// barriers; kNoValue is whatever they have done so far, as an arrival announces it.
struct Act {
  bool one_lane = false;
  ValueId place = ir::kNoValue;
  bool write = false;
  bool crossed = false;  // the warp_sync that is looked at stands behind it

  bool operator<(const Act& other) const {
    return std::tie(one_lane, place, write, crossed) <
           std::tie(other.one_lane, other.place, other.write, other.crossed);
  }
};

bool lanes_meet(Op op) {
  return op == Op::warp_sync || op == Op::named_sync || op == Op::cta_sync ||
         op == Op::cluster_sync;
}

// Follows what lanes have done since they last met, with one warp_sync left out.
class LaneActs {
 public:
  using Acts = std::set<Act>;

  LaneActs(const Sites& sites, std::size_t without) : sites_(sites), without_(without) {}

  bool sync_orders_some() {
    walk(sites_.kernel().body, 0, {}, /*one_lane=*/false);
    return orders_;
  }

 private:
  Acts walk(const ir::Block& block, std::size_t number, Acts acts, bool one_lane) {
    Acts of_roles;  // other warps do what another role does
    for (const ir::Operation& operation : block.body) {
      const Site& site = sites_.at(number);
      if (operation.op == Op::role) {
        of_roles.merge(enter(operation, site, acts, one_lane));
        number = site.end;
        continue;
      }
      if (!ir::info(operation.op).pure()) acts.merge(of_roles);
      acts = operation.blocks.empty() ? visit(operation, site, std::move(acts), one_lane)
                                      : enter(operation, site, acts, one_lane);
      number = site.end;
    }
    return acts;
  }

  Acts visit(const ir::Operation& operation, const Site& site, Acts acts, bool one_lane) {
    if (site.number == without_) {
      Acts crossed;
      for (Act act : acts) {
        act.crossed = true;
        crossed.insert(act);
      }
      return crossed;
    }
    if (lanes_meet(operation.op)) return {};
    // Lanes come together to a product, and none is left behind at a wait.
    if (ir::info(operation.op).agent == ir::Agent::warpgroup) {
      for (auto act = acts.begin(); act != acts.end();) {
        const bool waits = act->place != ir::kNoValue &&
                           sites_.kernel().type(act->place).is(ir::Type::Kind::mbarriers);
        act = waits ? acts.erase(act) : std::next(act);
      }
    }
    for (const Act& act : acts_of(operation, one_lane)) {
      orders_ = orders_ || std::any_of(acts.begin(), acts.end(), [&](const Act& before) {
                  return before.crossed && conflict(before, act);
                });
      acts.insert(act);
    }
    return acts;
  }

  Acts enter(const ir::Operation& operation, const Site& site, const Acts& before, bool one_lane) {
    const bool elects = one_lane || operation.op == Op::elect;
    const bool loops = operation.op == Op::for_loop || operation.op == Op::while_loop;
    Acts behind = operation.op == Op::if_then ? Acts{} : before;
    Acts at_start = before;
    for (std::size_t size = SIZE_MAX; size != at_start.size();) {
      size = at_start.size();
      std::size_t number = site.number + 1;
      for (const ir::Block& block : operation.blocks) {
        const Acts out = walk(block, number, at_start, elects);
        behind.insert(out.begin(), out.end());
        for (std::size_t i = 0; i < block.body.size(); ++i) number = sites_.at(number).end;
      }
      if (loops) at_start.insert(behind.begin(), behind.end());
    }
    return behind;
  }

  Acts acts_of(const ir::Operation& operation, bool one_lane) const {
    const ir::OpInfo& record = ir::info(operation.op);
    const bool alone = one_lane || record.agent == ir::Agent::lane;
    // Products order their warp's lanes themselves, and say nothing of other accesses.
    const bool of_registers =
        record.pure() || record.is_place() || record.agent == ir::Agent::warpgroup ||
        record.family == ir::Family::computation || record.family == ir::Family::array;
    if (of_registers || operation.op == Op::yield || operation.op == Op::bulk_commit) return {};
    Acts acts;
    if (operation.op == Op::mbarrier_wait && !alone) {
      acts.insert({alone, operation.operands[0], /*write=*/false});
      return acts;
    }
    const bool accesses =
        record.family == ir::Family::bulk_copy || record.family == ir::Family::global_access ||
        record.family == ir::Family::matrix_access || record.family == ir::Family::element_access ||
        record.family == ir::Family::fragment_access || record.family == ir::Family::shared_word;
    if (!accesses) acts.insert({alone, ir::kNoValue, /*write=*/true});
    for (const ValueId operand : operation.operands) {
      const ir::Type& type = sites_.kernel().type(operand);
      if (type.is(ir::Type::Kind::shared)) {
        acts.insert({alone, operand, record.writes(ir::Memory::shared)});
      } else if (type.is(ir::Type::Kind::tensor) || type.is(ir::Type::Kind::tensor_map)) {
        acts.insert({alone, tensor_behind(sites_, operand), record.writes(ir::Memory::global)});
      }
    }
    return acts;
  }

  // Whether lanes have to wait for each other between the two.
  bool conflict(const Act& one, const Act& other) const {
    if (one.one_lane && other.one_lane) return false;
    if (one.place == ir::kNoValue || other.place == ir::kNoValue) return true;
    return (one.write || other.write) && overlap(one.place, other.place);
  }

  bool overlap(ValueId one, ValueId other) const {
    const Site *a = sites_.definition(one), *b = sites_.definition(other);
    if (one == other || !a || !b || a->op() != Op::shared || b->op() != Op::shared) {
      return one == other;
    }
    const auto begin = [](const Site& shared) {
      return shared.operation->attributes.integer(ir::Key::offset);
    };
    const auto end = [&](const Site& shared) {
      const ir::Attributes& attributes = shared.operation->attributes;
      return begin(shared) +
             attributes.integer_or(ir::Key::stages, 1) * attributes.shared_layout().size_bytes();
    };
    return begin(*a) < end(*b) && begin(*b) < end(*a);
  }

  const Sites& sites_;
  std::size_t without_;
  bool orders_ = false;
};

}  // namespace

std::string lanes_meet_anyway(const Sites& sites, const Site& sync) {
  if (LaneActs(sites, sync.number).sync_orders_some()) return {};
  return "between the places where the lanes meet before it and behind it none does anything that "
         "another one's acts have to be in order with";
}

}  // namespace tilewright::simulator
