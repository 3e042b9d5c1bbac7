#include "language/waited_phase.h"
#include "tilewright/blackwell.h"

namespace tilewright {

using ir::Op;

struct ProductBarrier::State {
  std::shared_ptr<WaitedPhase> phase;
  int role = 0;  // the serial of the role that waits
};

ProductBarrier::ProductBarrier(Kernel& kernel, std::string name, SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "ProductBarrier", where);
  state_->phase = WaitedPhase::make(tracer, std::move(name), 1, where);
}

void ProductBarrier::wait(SourceLocation where) {
  Tracer& tracer = in_role("wait", where);
  const Tracer::Role& role = *tracer.role();
  if (role.warps != 1 || (state_->role != 0 && state_->role != role.serial)) {
    Diagnostic(where, "wait: the role \"" + role.name +
                          "\" is not the one warp that issues products and waits for them")
        .token("wait")
        .note(state_->phase->where(), "the barrier is declared")
        .fix("give each such role a barrier of its own, and warps(1)")
        .raise();
  }
  state_->role = role.serial;
  plain(tracer, Op::tcgen05_commit, {state_->phase->barrier(), tracer.integer(0, where)}, {},
        where);
  state_->phase->wait(tracer, where);
}

}  // namespace tilewright
