#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "language/waited_phase.h"
#include "tilewright/blackwell.h"
#include "tilewright/function_ref.h"

namespace tilewright {

using ir::Key;
using ir::Op;

struct Barrier::State {
  std::shared_ptr<WaitedPhase> phase;
  std::string name;
  std::optional<FirstPhase> first;  // that the role which is being traced has begun with
  SourceLocation first_where;
};

Barrier::Barrier(Kernel& kernel, std::string name, int arrivals, SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "Barrier", where);
  constexpr int kMostArrivals = (1 << 20) - 1;  // PTX, mbarrier.init
  if (arrivals < 1 || arrivals > kMostArrivals) {
    Diagnostic(where, "Barrier \"" + name + "\": " + std::to_string(arrivals) + " arrivals")
        .token('"' + name + '"')
        .fix("say how many a phase has: from 1 to " + std::to_string(kMostArrivals))
        .raise();
  }
  state_->name = name;
  state_->phase = WaitedPhase::make(tracer, std::move(name), arrivals, where);
  tracer.on_role.push_back([state = std::weak_ptr<State>(state_)](bool) {
    if (const auto barrier = state.lock()) barrier->first.reset();
  });
}

void Barrier::arrive(SourceLocation where) const {
  Tracer& tracer = in_role("arrive", where);
  plain(tracer, Op::mbarrier_arrive, {state_->phase->barrier(), tracer.integer(0, where)}, {},
        where);
}

void Barrier::commit(SourceLocation where) const {
  Tracer& tracer = in_role("commit", where);
  require_one_warp(tracer, "commit", where);
  plain(tracer, Op::tcgen05_commit, {state_->phase->barrier(), tracer.integer(0, where)}, {},
        where);
}

void Barrier::load(FunctionRef<void()> loads, SourceLocation where) const {
  Tracer& tracer = in_role("load", where);
  require_one_warp(tracer, "load", where);
  const ir::ValueId first = tracer.integer(0, where);
  // Their bytes are known behind them, and expected before.
  tracer.append(Op::mbarrier_expect_tx, {state_->phase->barrier(), first}, {}, {}, where);
  const std::size_t expected = tracer.body().size() - 1;
  tracer.filling = Tracer::Filling{state_->phase->barrier(), first, 0, tracer.depth(), 0, false};
  loads();
  const std::int64_t bytes = tracer.filling->bytes;
  tracer.filling.reset();
  if (bytes == 0) {
    Diagnostic(where, "load: nothing is loaded for the barrier \"" + state_->name + "\"")
        .token("load")
        .fix("call tma_load inside, or arrive()")
        .raise();
  }
  tracer.body()[expected].attributes.set(Key::bytes, bytes);
}

void Barrier::wait(FirstPhase first, SourceLocation where) const {
  Tracer& tracer = in_role("wait", where);
  if (state_->first && *state_->first != first) {
    Diagnostic(where,
               "wait: the role \"" + tracer.role()->name + "\" has begun with the other phase")
        .token("wait")
        .note(state_->first_where, "where it first waits for \"" + state_->name + '"')
        .fix("give all waits of a role for one barrier the same FirstPhase")
        .raise();
  }
  if (!state_->first) state_->first_where = where;
  state_->first = first;
  state_->phase->wait(tracer, where, first != FirstPhase::own);
}

}  // namespace tilewright
