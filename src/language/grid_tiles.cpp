#include "language/explicit_tracing.h"
#include "tilewright/blackwell.h"
#include "tilewright/function_ref.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

constexpr std::int64_t kWords = 4;  // of an answer

}  // namespace

struct GridTiles::State {
  std::string name;
  int stages = 0;
  SourceLocation where;
  ir::ValueId words = ir::kNoValue, full = ir::kNoValue, empty = ir::kNoValue;
  int asking = 0;                             // the serial of the role that asks
  int counted = 0;                            // and of the role whose arrivals are counted
  std::unique_ptr<Cell<Index>> stage, phase;  // of the role that is being traced

  void advance() const {
    const Index next = *stage + 1, was = *phase;
    const Condition wraps = next == stages;
    *stage = select(wraps, 0, next);
    *phase = select(wraps, 1 - was, was);
  }

  void wait(Tracer& tracer, ir::ValueId barriers, const Index& parity, SourceLocation at) const {
    tracer.append(Op::mbarrier_wait,
                  {barriers, tracer.use(Index(*stage).handle(), "GridTiles", at),
                   tracer.use(parity.handle(), "GridTiles", at)},
                  {}, {}, at);
  }

  ir::ValueId first_word(Tracer& tracer, SourceLocation at) const {
    return tracer.use((Index(*stage) * kWords).handle(), "GridTiles", at);
  }

  // The answer of this stage, which all CTAs then have read.
  Index read(Tracer& tracer, SourceLocation at) {
    wait(tracer, full, *phase, at);
    const Index taken(tracer.handle(
        tracer.emit(Op::query_cancel, {words, first_word(tracer, at)}, Type::scalar(i32), {}, at)));
    // The next answer is not written by threads.
    plain(tracer, Op::fence_proxy_async, {}, {}, at);
    plain(tracer, Op::warp_sync, {}, {}, at);
    const std::int64_t ctas = tracer.kernel().cluster;
    if (counted != tracer.role()->serial) {
      counted = tracer.role()->serial;
      ir::Attributes& barriers = tracer.place_operation(empty).attributes;
      barriers.set(Key::arrivals, barriers.integer(Key::arrivals) + tracer.role()->warps * ctas);
    }
    std::vector<ir::ValueId> operands{empty, tracer.use(Index(*stage).handle(), "GridTiles", at)};
    if (ctas > 1) operands.push_back(tracer.integer(0, at));  // who asks for all
    plain(tracer, Op::mbarrier_arrive, std::move(operands), {}, at);
    advance();
    return taken;
  }
};

GridTiles::GridTiles(Kernel& kernel, std::string name, Stages stages, SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "GridTiles", where);
  State& tiles = *state_;
  tiles.name = std::move(name);
  tiles.stages = stages.count;
  tiles.where = where;
  const std::int64_t words = kWords * stages.count;
  tiles.words = tracer.place(Op::shared, {}, Type::of(Type::Kind::shared, i32, {1, 1, words}),
                             {{Key::name, tiles.name + "_answers"},
                              {Key::layout, ir::SharedLayout::row_major({1, words}, 4)},
                              {Key::stages, std::int64_t{1}}},
                             where);
  const auto barriers = [&](const char* suffix, std::int64_t arrivals) {
    return tracer.place(Op::mbarriers, {}, Type::of(Type::Kind::mbarriers, i64, {stages.count}),
                        {{Key::name, tiles.name + suffix}, {Key::arrivals, arrivals}}, where);
  };
  tiles.full = barriers("_full", 1);
  tiles.empty = barriers("_empty", 0);  // whoever reads answers is counted
  tracer.on_role.push_back([state = std::weak_ptr<State>(state_)](bool begin) {
    const auto tiles = state.lock();
    if (!tiles) return;
    for (auto* cell : {&tiles->stage, &tiles->phase}) {
      *cell = begin ? std::make_unique<Cell<Index>>(Index(0, tiles->where), tiles->where) : nullptr;
    }
  });
}

void GridTiles::ask(SourceLocation where) {
  Tracer& tracer = in_role("ask", where);
  State& tiles = *state_;
  if (tracer.role()->warps != 1 || (tiles.asking != 0 && tiles.asking != tracer.role()->serial)) {
    Diagnostic(where, "ask: the role \"" + tracer.role()->name + "\" has " +
                          std::to_string(tracer.role()->warps) +
                          " warps, or another role asks for the tiles \"" + tiles.name + "\"")
        .token("ask")
        .fix("let one role of warps(1) ask")
        .raise();
  }
  tiles.asking = tracer.role()->serial;
  const Tracer::At at(tracer, where);
  const bool alone = tracer.kernel().cluster == 1;
  // The first CTA of a cluster asks for all of them, once they have read what the stage has.
  const auto by_first = [&](FunctionRef<void()> body) {
    if (alone) return body();
    when(cluster_rank(where) == 0, body);
  };
  Cell<Condition> going{Condition(true, where), where};
  repeat_while(
      going,
      [&] {
        by_first([&] { tiles.wait(tracer, tiles.empty, 1 - Index(*tiles.phase), where); });
        const ir::ValueId stage = tracer.use(Index(*tiles.stage).handle(), "ask", where);
        tracer.append(Op::mbarrier_expect_tx, {tiles.full, stage}, {}, {{Key::bytes, kWords * 4}},
                      where);
        by_first([&] {
          plain(tracer, Op::try_cancel,
                {tiles.words, tiles.first_word(tracer, where), tiles.full, stage}, {}, where);
        });
        going = tiles.read(tracer, where) >= 0;
      },
      where);
}

void GridTiles::each(FunctionRef<void(const Index& cta)> body, SourceLocation where) {
  Tracer& tracer = in_role("each", where);
  State& tiles = *state_;
  std::optional<Tracer::At> at(std::in_place, tracer, where);
  const Index own = cta_index(where);
  const bool alone = tracer.kernel().cluster == 1;
  Cell<Index> first{alone ? own : own - cluster_rank(where), where};
  Cell<Condition> going{Condition(true, where), where};
  repeat_while(
      going,
      [&] {
        const Index now = first;
        at.reset();
        body(now);  // whose lines are its own
        at.emplace(tracer, where);
        const Index next = tiles.read(tracer, where);
        going = next >= 0;
        first = next;
      },
      where);
}

}  // namespace tilewright
