#pragma once

#include <memory>

#include "language/explicit_tracing.h"

namespace tilewright {

// An mbarrier, and of the role that is being traced the parity of the phase that it waits for next.
class WaitedPhase {
 public:
  // The parity is begun anew by each role, for as long as the owner is there.
  static std::shared_ptr<WaitedPhase> make(Tracer& tracer, std::string name, std::int64_t arrivals,
                                           SourceLocation where) {
    const auto phase = std::make_shared<WaitedPhase>();
    phase->where_ = where;
    phase->barrier_ =
        tracer.place(ir::Op::mbarriers, {}, ir::Type::of(ir::Type::Kind::mbarriers, i64, {1}),
                     {{ir::Key::name, std::move(name)}, {ir::Key::arrivals, arrivals}}, where);
    tracer.on_role.push_back([weak = std::weak_ptr<WaitedPhase>(phase)](bool begin) {
      const auto phase = weak.lock();
      if (!phase) return;
      phase->parity_ =
          begin ? std::make_unique<Cell<Index>>(Index(0, phase->where_), phase->where_) : nullptr;
    });
    return phase;
  }

  ir::ValueId barrier() const { return barrier_; }
  SourceLocation where() const { return where_; }

  // `before`: for the phase before that one.
  void wait(Tracer& tracer, SourceLocation where, bool before = false) {
    const Tracer::At at(tracer, where);
    const Index turn = *parity_;
    const Index parity = before ? 1 - turn : turn;
    plain(tracer, ir::Op::mbarrier_wait,
          {barrier_, tracer.integer(0, where), tracer.use(parity.handle(), "wait", where)}, {},
          where);
    *parity_ = 1 - turn;
  }

 private:
  ir::ValueId barrier_ = ir::kNoValue;
  SourceLocation where_;
  std::unique_ptr<Cell<Index>> parity_;
};

}  // namespace tilewright
