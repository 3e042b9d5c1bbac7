#include "ir/memory_order.h"
#include "language/explicit_tracing.h"
#include "tilewright/ranks.h"

// Barriers over the CTAs of a grid, and over those of all ranks. Their words count up with the
// turns and are never reset.
namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

// How many warps come in this rank.
Index arriving_warps(const char* what, SourceLocation where) {
  return cta_count(where) * Index(in_role(what, where).role()->warps);
}

// One more warp has come; how many had before.
Index arrive(const Signals& arrivals, MemoryOrder order, SourceLocation where) {
  Tracer& tracer = in_role("sync", where);
  ir::Attributes attributes;
  ir::set_order(attributes, order);
  const ir::ValueId words = tracer.use(arrivals.handle(), "sync", where);
  return Index(tracer.handle(
      tracer.emit(Op::atomic_add, {words, tracer.integer(0, where), tracer.integer(1, where)},
                  Type::scalar(i32), std::move(attributes), where)));
}

}  // namespace

GridBarrier::GridBarrier(Kernel& kernel, const std::string& name, SourceLocation where)
    : arrivals_(kernel.signals(name, 1, where)) {}

void GridBarrier::sync(const IndexOperand& turn, SourceLocation where) const {
  const Tracer::At at(in_role("sync", where), where);
  const Index all = arriving_warps("sync", where);
  warp_sync(where);
  signal_add(arrivals_, 0, 1, {Semantics::release, Scope::gpu}, where);
  wait_flag(arrivals_, 0, Compare::ge, turn.index * all, {Semantics::acquire, Scope::gpu}, where);
}

RankBarrier::RankBarrier(Kernel& kernel, const std::string& name, SourceLocation where)
    : arrivals_(kernel.signals(name, 1, where)),
      ranks_(kernel.signals(name + "_ranks", ir::kMaximumRanks, where)),
      rank_(kernel.rank(where)),
      count_(kernel.ranks(where)) {}

// Who comes last in its rank has acquired what the others there have released, and says so to all
// ranks.
void RankBarrier::sync(const IndexOperand& turn, SourceLocation where) const {
  const Tracer::At at(in_role("sync", where), where);
  const Index all = arriving_warps("sync", where);
  warp_sync(where);
  const Index before = arrive(arrivals_, {Semantics::acq_rel, Scope::gpu}, where);
  when(
      before == turn.index * all - 1,
      [&] {
        for (Index to : range(IndexOperand(count_, where))) {
          signal(ranks_.at(to), rank_, turn.index, {Semantics::release, Scope::system}, where);
        }
      },
      {}, where);
  for (Index from : range(IndexOperand(count_, where))) {
    wait_flag(ranks_, from, Compare::ge, turn.index, {Semantics::acquire, Scope::system}, where);
  }
}

}  // namespace tilewright
