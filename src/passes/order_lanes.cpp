#include "passes/order_lanes.h"

#include <utility>
#include <vector>

#include "ir/memory_order.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;

// Since the lanes met last.
struct Unordered {
  bool all = false;  // all lanes have accessed memory
  bool one = false;  // one lane has, or has waited for others

  Unordered operator|(const Unordered& other) const { return {all || other.all, one || other.one}; }
};

bool is_one_lanes(const Operation& o) {
  return o.op == Op::elect || ir::info(o.op).agent == ir::Agent::lane;
}

bool accesses_shared(const Operation& o) {
  return ir::info(o.op).touches(ir::Memory::shared, ir::Proxy::generic);
}

// What all lanes do and one of them may tell others of. Reads of global memory are the author's to
// order: most are of what nobody writes.
bool accesses_memory(const Operation& o) {
  return accesses_shared(o) || ir::info(o.op).writes(ir::Memory::global, ir::Proxy::generic) ||
         ir::info(o.op).family == ir::Family::tensor_access;
}

bool waits(const Operation& o) {
  return o.op == Op::mbarrier_wait || o.op == Op::bulk_wait || o.op == Op::wait_flag;
}

// Of elements that all lanes access in an order: each lane's access hands on what the others did
// too, or learns for them.
bool is_ordered(const Operation& o, Semantics semantics) {
  if (ir::info(o.op).family != ir::Family::global_access) return false;
  const Semantics own = ir::order_of(o).semantics;
  return own == semantics || own == Semantics::acq_rel;
}

// Whether the lanes have to meet before it.
bool needs_sync(const Operation& o, const Unordered& state) {
  if (is_one_lanes(o)) return state.all;
  return (state.one && accesses_memory(o)) || (state.all && is_ordered(o, Semantics::release));
}

bool synchronises_lanes(const Operation& o) {
  return o.op == Op::warp_sync || o.op == Op::named_sync || o.op == Op::cta_sync ||
         o.op == Op::cluster_sync;
}

// All that the operation and those inside it may leave unordered.
Unordered left_by(const Operation& o, bool elected = false) {
  elected = elected || is_one_lanes(o);
  Unordered left;
  left.all = !elected && accesses_memory(o);
  left.one = elected && (accesses_shared(o) || waits(o));
  for (const ir::Block& block : o.blocks) {
    for (const Operation& inner : block.body) left = left | left_by(inner, elected);
  }
  return left;
}

Unordered order(ir::Block& block, Unordered state);

// Orders what is inside the operation; the state behind it.
Unordered behind(Operation& o, Unordered before) {
  if (synchronises_lanes(o)) return {};
  if (is_one_lanes(o) || o.blocks.empty()) return before | left_by(o);
  // One of two branches is taken; a loop may have no turn, and a role is not for all warps.
  Unordered result = o.op == Op::if_then ? Unordered() : before;
  // A turn comes behind what stands before the loop or behind another turn.
  if (o.op == Op::for_loop || o.op == Op::while_loop) before = before | left_by(o);
  for (ir::Block& block : o.blocks) result = result | order(block, before);
  return result;
}

Unordered order(ir::Block& block, Unordered state) {
  std::vector<Operation> ordered;
  ordered.reserve(block.body.size());
  for (Operation& o : block.body) {
    const auto meet = [&ordered, &state, where = o.where] {
      Operation sync;
      sync.op = Op::warp_sync;
      sync.where = where;
      ordered.push_back(std::move(sync));
      state = {};
    };
    if (needs_sync(o, state)) meet();
    state = behind(o, state);
    const bool acquires = is_ordered(o, Semantics::acquire);
    ordered.push_back(std::move(o));
    if (acquires) meet();
  }
  block.body = std::move(ordered);
  return state;
}

}  // namespace

void order_lanes(ir::Kernel& kernel) { order(kernel.body, {}); }

}  // namespace tilewright::passes
