#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "language/explicit_tracing.h"
#include "tilewright/blackwell.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

struct Barrier::State {
  ir::ValueId barrier = ir::kNoValue;
  std::string name;
  SourceLocation where;
  // Of the role that is being traced: the parity of the phase to wait for next, and which phase it
  // began with.
  std::unique_ptr<Cell<Index>> parity;
  std::optional<FirstPhase> first;
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
  state_->where = where;
  state_->name = name;
  state_->barrier =
      tracer.place(Op::mbarriers, {}, Type::of(Type::Kind::mbarriers, i64, {1}),
                   {{Key::name, std::move(name)}, {Key::arrivals, std::int64_t{arrivals}}}, where);
  tracer.on_role.push_back([state = std::weak_ptr<State>(state_)](bool begin) {
    const auto barrier = state.lock();
    if (!barrier) return;
    barrier->parity =
        begin ? std::make_unique<Cell<Index>>(Index(0, barrier->where), barrier->where) : nullptr;
    barrier->first.reset();
  });
}

void Barrier::arrive(SourceLocation where) const {
  Tracer& tracer = in_role("arrive", where);
  plain(tracer, Op::mbarrier_arrive, {state_->barrier, tracer.integer(0, where)}, {}, where);
}

void Barrier::commit(SourceLocation where) const {
  Tracer& tracer = in_role("commit", where);
  require_one_warp(tracer, "commit", where);
  plain(tracer, Op::tcgen05_commit, {state_->barrier, tracer.integer(0, where)}, {}, where);
}

void Barrier::load(const std::function<void()>& loads, SourceLocation where) const {
  Tracer& tracer = in_role("load", where);
  require_one_warp(tracer, "load", where);
  const ir::ValueId first = tracer.integer(0, where);
  // Their bytes are known behind them, and expected before.
  tracer.append(Op::mbarrier_expect_tx, {state_->barrier, first}, {}, {}, where);
  const std::size_t expected = tracer.body().size() - 1;
  tracer.filling = Tracer::Filling{state_->barrier, first, 0, tracer.depth(), 0, false};
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
  const Tracer::At at(tracer, where);
  const Index turn = *state_->parity;
  const Index parity = first == FirstPhase::own ? turn : 1 - turn;
  plain(tracer, Op::mbarrier_wait,
        {state_->barrier, tracer.integer(0, where), tracer.use(parity.handle(), "wait", where)}, {},
        where);
  *state_->parity = 1 - turn;
}

}  // namespace tilewright
