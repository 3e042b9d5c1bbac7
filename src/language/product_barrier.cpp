#include "language/explicit_tracing.h"
#include "tilewright/blackwell.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

struct ProductBarrier::State {
  ir::ValueId barrier = ir::kNoValue;
  SourceLocation where;
  int role = 0;  // the serial of the role that waits
  // Of the role that is being traced: the parity of the phase to wait for next.
  std::unique_ptr<Cell<Index>> parity;
};

ProductBarrier::ProductBarrier(Kernel& kernel, std::string name, SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "ProductBarrier", where);
  state_->where = where;
  state_->barrier =
      tracer.place(Op::mbarriers, {}, Type::of(Type::Kind::mbarriers, i64, {1}),
                   {{Key::name, std::move(name)}, {Key::arrivals, std::int64_t{1}}}, where);
  tracer.on_role.push_back([state = std::weak_ptr<State>(state_)](bool begin) {
    const auto barrier = state.lock();
    if (!barrier) return;
    barrier->parity =
        begin ? std::make_unique<Cell<Index>>(Index(0, barrier->where), barrier->where) : nullptr;
  });
}

void ProductBarrier::wait(SourceLocation where) {
  Tracer& tracer = in_role("wait", where);
  const Tracer::Role& role = *tracer.role();
  if (role.warps != 1 || (state_->role != 0 && state_->role != role.serial)) {
    Diagnostic(where, "wait: the role \"" + role.name +
                          "\" is not the one warp that issues products and waits for them")
        .token("wait")
        .note(state_->where, "the barrier is declared")
        .fix("give each such role a barrier of its own, and warps(1)")
        .raise();
  }
  state_->role = role.serial;
  const Tracer::At at(tracer, where);
  const ir::ValueId first = tracer.integer(0, where);
  plain(tracer, Op::tcgen05_commit, {state_->barrier, first}, {}, where);
  const Index parity = *state_->parity;
  plain(tracer, Op::mbarrier_wait,
        {state_->barrier, first, tracer.use(parity.handle(), "wait", where)}, {}, where);
  *state_->parity = 1 - parity;
}

}  // namespace tilewright
