#include "language/waited_phase.h"

namespace tilewright {

using ir::Key;
using ir::Op;

struct ClusterBarrier::State {
  std::string name;
  std::shared_ptr<WaitedPhase> phase;
  int role = 0;  // the serial of the role that arrives and waits
  std::string role_name;

  Tracer& enter(const char* what, SourceLocation at) {
    Tracer& tracer = in_role(what, at);
    const Tracer::Role& caller = *tracer.role();
    if (role == 0) {
      role = caller.serial;
      role_name = caller.name;
      // Each warp arrives on the barrier of every CTA.
      tracer.place_operation(phase->barrier())
          .attributes.set(Key::arrivals, caller.warps * tracer.kernel().cluster);
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
  state_->phase = WaitedPhase::make(tracer, std::move(name), 1, where);
}

void ClusterBarrier::arrive(SourceLocation where) {
  Tracer& tracer = state_->enter("arrive", where);
  const bool alone = tracer.kernel().cluster == 1;
  if (!alone) plain(tracer, Op::fence_cluster, {}, {}, where);
  plain(tracer, Op::warp_sync, {}, {}, where);  // one lane arrives for all
  const ir::ValueId barrier = state_->phase->barrier(), first = tracer.integer(0, where);
  if (alone) return plain(tracer, Op::mbarrier_arrive, {barrier, first}, {}, where);
  for (std::int64_t cta = 0; cta < tracer.kernel().cluster; ++cta) {
    plain(tracer, Op::mbarrier_arrive, {barrier, first, tracer.integer(cta, where)}, {}, where);
  }
}

void ClusterBarrier::wait(SourceLocation where) {
  Tracer& tracer = state_->enter("wait", where);
  state_->phase->wait(tracer, where);
  if (tracer.kernel().cluster > 1) plain(tracer, Op::fence_cluster, {}, {}, where);
}

}  // namespace tilewright
