#include "language/explicit_tracing.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

struct ClusterBarrier::State {
  std::string name;
  ir::ValueId barrier = ir::kNoValue;
  SourceLocation where;
  int role = 0;  // the serial of the role that arrives and waits
  std::string role_name;
  // Of the role that is being traced: the parity of the phase to wait for next.
  std::unique_ptr<Cell<Index>> parity;

  Tracer& enter(const char* what, SourceLocation at) {
    Tracer& tracer = in_role(what, at);
    const Tracer::Role& caller = *tracer.role();
    if (role == 0) {
      role = caller.serial;
      role_name = caller.name;
      // Each warp arrives on the barrier of every CTA.
      tracer.place_operation(barrier).attributes.set(Key::arrivals,
                                                     caller.warps * tracer.kernel().cluster);
    }
    if (role != caller.serial) {
      Diagnostic(at, std::string(what) + ": the role \"" + caller.name +
                         "\" uses the cluster barrier \"" + name + "\" of the role \"" + role_name +
                         "\"")
          .token(what)
          .fix("give each role a barrier of its own")
          .raise();
    }
    return tracer;
  }
};

ClusterBarrier::ClusterBarrier(Kernel& kernel, std::string name, SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "ClusterBarrier", where);
  state_->name = name;
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

void ClusterBarrier::arrive(SourceLocation where) {
  Tracer& tracer = state_->enter("arrive", where);
  const bool alone = tracer.kernel().cluster == 1;
  if (!alone) plain(tracer, Op::fence_cluster, {}, {}, where);
  plain(tracer, Op::warp_sync, {}, {}, where);  // one lane arrives for all
  const ir::ValueId first = tracer.integer(0, where);
  if (alone) return plain(tracer, Op::mbarrier_arrive, {state_->barrier, first}, {}, where);
  for (std::int64_t cta = 0; cta < tracer.kernel().cluster; ++cta) {
    plain(tracer, Op::mbarrier_arrive, {state_->barrier, first, tracer.integer(cta, where)}, {},
          where);
  }
}

void ClusterBarrier::wait(SourceLocation where) {
  Tracer& tracer = state_->enter("wait", where);
  const Tracer::At at(tracer, where);
  const Index parity = *state_->parity;
  plain(tracer, Op::mbarrier_wait,
        {state_->barrier, tracer.integer(0, where), tracer.use(parity.handle(), "wait", where)}, {},
        where);
  *state_->parity = 1 - parity;
  if (tracer.kernel().cluster > 1) plain(tracer, Op::fence_cluster, {}, {}, where);
}

}  // namespace tilewright
