#include "language/explicit_tracing.h"
#include "tilewright/blackwell.h"
#include "tilewright/function_ref.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

struct Ring::State {
  struct Part {
    ir::ValueId shared;
    int rows, columns;
  };
  std::string name;
  int stages = 0;
  std::vector<Part> parts;
  ir::ValueId full = ir::kNoValue, empty = ir::kNoValue;
  SourceLocation where;
  // The serial of the role that last was one.
  int producer = 0, consumer = 0, releasing = 0, committing = 0;
  std::string producer_name;
  // CTAs that share multicast loads: 0 for none, kCluster for all.
  static constexpr int kCluster = -1;
  int multicast = 0;
  std::int64_t group(std::int64_t cluster) const {
    return multicast == kCluster ? cluster : multicast;
  }
  // Of products of pairs of CTAs; who fills its stages and who frees them, as far as is known.
  static constexpr std::int64_t kPair = 2;
  bool pairs = false;
  bool by_loads = false, by_threads = false;
  Handle numbers;  // i32 beside each stage, if the ring has them
  int number_count = 0;
  // The position of the role that is being traced.
  std::unique_ptr<Cell<Index>> stage, phase;
};

Ring::Ring(Kernel& kernel, std::string name, Stages stages, std::vector<TileShape> tiles,
           SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "Ring", where);
  State& ring = *state_;
  ring.name = std::move(name);
  ring.stages = stages.count;
  ring.where = where;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TileShape& tile = tiles[i];
    const std::string part = tiles.size() == 1 ? ring.name : ring.name + std::to_string(i);
    ring.parts.push_back(
        {shared_place(tracer, part, tile, stages.count, where), tile.rows, tile.columns});
  }
  const auto barriers = [&](const char* suffix, std::int64_t arrivals) {
    return tracer.place(Op::mbarriers, {}, Type::of(Type::Kind::mbarriers, i64, {stages.count}),
                        {{Key::name, ring.name + suffix}, {Key::arrivals, arrivals}}, where);
  };
  ring.full = barriers("_full", 1);
  ring.empty = barriers("_empty", 0);  // release() counts the consuming warps
  // Roles run side by side: each counts its own position from the first stage.
  tracer.on_role.push_back([state = std::weak_ptr<State>(state_)](bool begin) {
    const auto ring = state.lock();
    if (!ring) return;
    ring->stage =
        begin ? std::make_unique<Cell<Index>>(Index(0, ring->where), ring->where) : nullptr;
    ring->phase =
        begin ? std::make_unique<Cell<Index>>(Index(0, ring->where), ring->where) : nullptr;
  });
}

Ring::~Ring() = default;

Ring& Ring::numbered(int count) {
  State& ring = *state_;
  Tracer& tracer = scheduled("numbered", ring.where);
  if (count <= 0) {
    Diagnostic(ring.where, "numbered: " + std::to_string(count) +
                               " numbers a stage of the ring \"" + ring.name + "\"")
        .token("Ring")
        .fix("ask for one or more")
        .raise();
  }
  const std::int64_t elements = std::int64_t{count} * ring.stages;
  ring.number_count = count;
  ring.numbers = tracer.handle(
      tracer.place(Op::shared, {}, Type::of(Type::Kind::shared, i32, {1, 1, elements}),
                   {{Key::name, ring.name + "_numbers"},
                    {Key::layout, ir::SharedLayout::row_major({1, elements}, 4)},
                    {Key::stages, std::int64_t{1}}},
                   ring.where));
  return *this;
}

Ring& Ring::multicast() {
  state_->multicast = State::kCluster;
  return *this;
}

Ring& Ring::multicast(int group, SourceLocation where) {
  if (group < 2) {
    Diagnostic(where, "multicast: a group of " + std::to_string(group) + " CTAs")
        .token("multicast")
        .fix("give at least 2, a divisor of the cluster's CTAs")
        .raise();
  }
  state_->multicast = group;
  return *this;
}

Ring& Ring::pairs() {
  state_->pairs = true;
  return *this;
}

void Ring::check_role(bool producing, const char* what, SourceLocation where) {
  Tracer& tracer = in_role(what, where);
  State& ring = *state_;
  int& mine = producing ? ring.producer : ring.consumer;
  const int other = producing ? ring.consumer : ring.producer;
  if (other == tracer.role()->serial) {
    Diagnostic(where, std::string(what) + ": the role \"" + tracer.role()->name +
                          "\" is both producer and consumer of the ring \"" + ring.name + "\"")
        .token(what)
        .fix("a role that waits for itself never goes on: produce and consume in different roles")
        .raise();
  }
  if (producing && mine != 0 && mine != tracer.role()->serial) {
    Diagnostic(where, std::string(what) + ": the roles \"" + ring.producer_name + "\" and \"" +
                          tracer.role()->name + "\" both produce the ring \"" + ring.name + "\"")
        .token(what)
        .fix("give each producing role a ring of its own")
        .raise();
  }
  if (ring.pairs && !tracer.kernel().cta_pairs) {
    Diagnostic(where, std::string(what) + ": the ring \"" + ring.name +
                          "\" is of pairs of CTAs, and the kernel's tensor memory is not")
        .token(what)
        .note(ring.where, "the ring is declared")
        .fix("declare TensorMemory of CtaGroup::pair, or leave out pairs()")
        .raise();
  }
  mine = tracer.role()->serial;
  if (producing) ring.producer_name = tracer.role()->name;
}

void Ring::wait(bool producing, const Index& stage, const Index& phase, const char* what,
                SourceLocation where) {
  Tracer& tracer = in_role(what, where);
  const State& ring = *state_;
  // Fresh barriers let a wait for parity 1 pass: the producer is one phase ahead.
  const Index parity = producing ? 1 - phase : phase;
  tracer.append(Op::mbarrier_wait,
                {producing ? ring.empty : ring.full, tracer.use(stage.handle(), what, where),
                 tracer.use(parity.handle(), what, where)},
                {}, {}, where);
}

Slot Ring::slot(const Index& stage, const char* what, SourceLocation where) const {
  Tracer& tracer = in_role(what, where);
  std::vector<SharedView> parts;
  for (const State::Part& part : state_->parts) {
    parts.push_back(ExplicitTracing::view(tracer, part.shared, stage, part.rows, part.columns));
  }
  return Slot(stage, std::move(parts), state_->numbers, state_->number_count, where);
}

Slot Ring::enter(bool producing, const char* what, SourceLocation where) {
  check_role(producing, what, where);
  State& ring = *state_;
  const Tracer::At at(in_role(what, where), where);
  const Index stage = ring.stages == 1 ? Index(0) : *ring.stage, phase = *ring.phase;
  wait(producing, stage, phase, what, where);
  const Index next = stage + 1;
  const Condition wraps = next == ring.stages;
  *ring.stage = select(wraps, 0, next);
  *ring.phase = select(wraps, 1 - phase, phase);
  return slot(stage, what, where);
}

Slot Ring::consume_at(const Index& position, SourceLocation where) {
  check_role(false, "consume_at", where);
  const Tracer::At at(in_role("consume_at", where), where);
  const int stages = state_->stages;
  const Index from_first = max(position, 0), stage = from_first % stages;
  wait(false, stage, from_first / stages % 2, "consume_at", where);
  return slot(stage, "consume_at", where);
}

Slot Ring::last(SourceLocation where) {
  check_role(false, "last", where);
  const Tracer::At at(in_role("last", where), where);
  const int stages = state_->stages;
  if (stages == 1) return slot(Index(0), "last", where);
  const Index next = *state_->stage;
  return slot(select(next == 0, stages - 1, next - 1), "last", where);
}

const SharedView& Slot::operator[](int part) const {
  if (part >= 0 && part < static_cast<int>(parts_.size())) return parts_[part];
  Diagnostic(where_, "tile " + std::to_string(part) +
                         " of the stage that is taken here, which has " +
                         std::to_string(parts_.size()))
      .fix("tiles count from 0, in the order of the ring's declaration")
      .raise();
}

Index Slot::number(int which, SourceLocation where) const {
  Tracer& tracer = in_role("number", where);
  if (!numbers_.tracer()) {
    Diagnostic(where, "number: the ring's stages carry none")
        .token("number")
        .fix("declare it as Ring(...).numbered()")
        .raise();
  }
  if (which < 0 || which >= number_count_) {
    Diagnostic(where, "number: " + std::to_string(which) + " of " + std::to_string(number_count_))
        .token("number")
        .fix("declare the ring with .numbered(" + std::to_string(which + 1) + ")")
        .raise();
  }
  const Tracer::At at(tracer, where);
  const Index element = number_count_ == 1 ? stage_ : stage_ * number_count_ + which;
  return Index(tracer.handle(tracer.emit(
      Op::shared_load,
      {tracer.use(numbers_, "number", where), tracer.use(element.handle(), "number", where)},
      Type::scalar(i32), {}, where)));
}

namespace {

// Threads release a stage in one CTA of a pair, where the loads of both would have to wait.
void check_pair(bool by_loads, bool by_threads, const std::string& ring, const char* what,
                SourceLocation where) {
  if (!by_loads || !by_threads) return;
  Diagnostic(where, std::string(what) + ": threads release what is loaded into the ring \"" + ring +
                        "\", which is of pairs of CTAs")
      .token(what)
      .fix("release it behind products, or load into a ring without pairs()")
      .raise();
}

// Each warp of a role runs its body: several would arrive on a full barrier that expects one.
void require_one_warp(const Tracer& tracer, const std::string& ring, SourceLocation where,
                      const char* what = "produce") {
  const Tracer::Role& role = *tracer.role();
  if (role.warps == 1 || tracer.in_condition()) return;
  Diagnostic(where, std::string(what) + ": every one of the " + std::to_string(role.warps) +
                        " warps of the role \"" + role.name +
                        "\" would fill the stages of the ring \"" + ring + "\"")
      .token(what)
      .fix("give the role warps(1), or let one warp do it: when(warp_index() == 0, ...)")
      .raise();
}

}  // namespace

void Ring::fill(const std::vector<IndexOperand>& numbers, FunctionRef<void(const Slot&)> loads,
                SourceLocation where) {
  if (loads && state_->parts.empty()) {
    Diagnostic(where, "produce: the ring \"" + state_->name + "\" has no tile to load into")
        .token("produce")
        .fix("give the tiles of one stage: {{dtype, rows, columns}}")
        .raise();
  }
  const Slot slot = enter(true, "produce", where);
  Tracer& tracer = Tracer::get("produce", where);
  std::optional<Tracer::At> at(std::in_place, tracer, where);
  const ir::ValueId stage = tracer.use(slot.stage().handle(), "produce", where);
  const int count = static_cast<int>(numbers.size());
  if (count != state_->number_count) {
    Diagnostic(where, "produce: the stages of the ring \"" + state_->name + "\" carry " +
                          std::to_string(state_->number_count) + " numbers, but " +
                          std::to_string(count) + " are given")
        .token("produce")
        .fix("declare it with .numbered(count) and give every stage its numbers")
        .raise();
  }
  // Before the arrival that publishes them.
  for (int i = 0; i < count; ++i) {
    const Index element = count == 1 ? slot.stage() : slot.stage() * count + i;
    plain(tracer, Op::shared_store,
          {tracer.use(state_->numbers, "produce", where),
           tracer.use(element.handle(), "produce", where),
           tracer.use(numbers[i].index.handle(), "produce", where)},
          {}, where);
  }
  if (!loads) {
    require_one_warp(tracer, state_->name, where);
    return plain(tracer, Op::mbarrier_arrive, {state_->full, stage}, {}, where);
  }
  if (state_->pairs) {
    state_->by_loads = true;
    check_pair(true, state_->by_threads, state_->name, "produce", where);
  }
  // The transaction count is known once the loads are recorded, but expected before them.
  const std::size_t expected = expect(slot.stage(), where);
  tracer.filling = Tracer::Filling{
      state_->full, stage, 0, tracer.depth(), state_->group(tracer.kernel().cluster),
      state_->pairs};
  at.reset();
  loads(slot);  // whose lines are its own
  at.emplace(tracer, where);
  const std::int64_t bytes = tracer.filling->bytes;
  tracer.filling.reset();
  if (bytes == 0) {
    bool stores = false;
    std::vector<ir::Operation>& body = tracer.body();
    for (std::size_t i = expected; i < body.size(); ++i) {
      stores = stores || body[i].op == Op::store_tile;
      for (const ir::Block& inner : body[i].blocks) {
        ir::for_each(inner, [&](const ir::Operation& o) { stores |= o.op == Op::store_tile; });
      }
    }
    if (!stores || state_->pairs) {
      Diagnostic(where, "produce: nothing is loaded into the ring \"" + state_->name + "\"")
          .token("produce")
          .fix("call tma_load inside, or store(stage, tile)")
          .raise();
    }
    // Full when the warp has stored it.
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(expected));
    require_one_warp(tracer, state_->name, where);
    return plain(tracer, Op::mbarrier_arrive, {state_->full, stage}, {}, where);
  }
  ir::Operation& before = tracer.body()[expected];
  if (state_->pairs) {
    before.blocks[0].body[0].attributes.set(Key::bytes, bytes * State::kPair);
  } else {
    before.attributes.set(Key::bytes, bytes);
  }
  require_one_warp(tracer, state_->name, where);
}

// Where the operation stands that expects the stage's bytes: of a pair, under a condition, that of
// the first CTA, which expects those of both.
std::size_t Ring::expect(const Index& stage, SourceLocation where) {
  Tracer& tracer = in_role("produce", where);
  const auto record = [&] {
    tracer.append(Op::mbarrier_expect_tx,
                  {state_->full, tracer.use(stage.handle(), "produce", where)}, {}, {}, where);
  };
  if (state_->pairs) {
    when(is_first_of_pair(where), record);
  } else {
    record();
  }
  return tracer.body().size() - 1;
}

void Ring::produce(FunctionRef<void(const Slot&)> loads, SourceLocation where) {
  fill({}, loads, where);
}
void Ring::produce(const IndexOperand& number, FunctionRef<void(const Slot&)> loads) {
  fill({number}, loads, number.where);
}
void Ring::produce(const IndexOperand& number) { fill({number}, {}, number.where); }
void Ring::produce(const std::vector<IndexOperand>& numbers, FunctionRef<void(const Slot&)> loads,
                   SourceLocation where) {
  fill(numbers, loads, where);
}
void Ring::produce(const std::vector<IndexOperand>& numbers, SourceLocation where) {
  fill(numbers, {}, where);
}

Slot Ring::reserve(SourceLocation where) { return enter(true, "reserve", where); }

void Ring::commit(const Slot& slot, SourceLocation where) {
  Tracer& tracer = in_role("commit", where);
  require_one_warp(tracer, state_->name, where, "commit");
  commit_to(state_->full, slot.stage(), State::kPair, "commit", where);
}

Slot Ring::consume(SourceLocation where) { return enter(false, "consume", where); }

void Ring::release_behind_products(const Slot& slot, SourceLocation where) {
  Tracer& tracer = in_role("release_behind_products", where);
  require_one_warp(tracer, state_->name, where, "release_behind_products");
  // Of a pair's CTAs the first releases it in both, and in all that its stages are loaded with.
  const std::int64_t shared = state_->multicast != 0 ? state_->group(tracer.kernel().cluster) : 0;
  const std::int64_t group = std::max(shared, State::kPair);
  if (state_->committing != tracer.role()->serial) {
    state_->committing = tracer.role()->serial;
    // Of a larger role, whose warps ask which one they are, one warp of each warpgroup.
    const std::int64_t warpgroups = std::max(1, tracer.role()->warps / 4);
    count_arrivals(state_->pairs ? group / State::kPair : warpgroups);
  }
  commit_to(state_->empty, slot.stage(), group, "release_behind_products", where);
}

// Arrives when the products are over that the thread has issued: of pairs in each CTA of the group.
void Ring::commit_to(std::uint32_t barriers, const Index& stage, std::int64_t group,
                     const char* what, SourceLocation where) {
  Tracer& tracer = in_role(what, where);
  if (tracer.kernel().cta_pairs && !state_->pairs) {
    Diagnostic(where, std::string(what) + ": the ring \"" + state_->name +
                          "\" is of this CTA, and the products are of a pair of CTAs")
        .token(what)
        .note(state_->where, "the ring is declared")
        .fix("say pairs() of the ring")
        .raise();
  }
  ir::Attributes attributes;
  if (state_->pairs) {
    attributes.set(Key::multicast, (std::int64_t{1} << group) - 1);
    if (group < tracer.kernel().cluster) attributes.set(Key::multicast_group, group);
  }
  plain(tracer, Op::tcgen05_commit, {barriers, tracer.use(stage.handle(), what, where)},
        std::move(attributes), where);
}

void Ring::release(const Index& stage, SourceLocation where) {
  // Every lane has read the stage's numbers, and one of them arrives.
  if (state_->numbers.tracer()) plain(in_role("release", where), Op::warp_sync, {}, {}, where);
  arrive_empty(stage, where);
}

// ptxas takes a branch in which lanes meet for one on which they may differ, and what a loop
// carries through it for different from lane to lane.
void Ring::release_if(const Condition& condition, const Index& stage, SourceLocation where) {
  plain(in_role("release_if", where), Op::warp_sync, {}, {}, where);
  when(condition, [&] { arrive_empty(stage, where); });
}

// For each phase of the empty barriers, once in a role.
void Ring::count_arrivals(std::int64_t arrivals) {
  State& ring = *state_;
  Tracer& tracer = Tracer::get("release", ring.where);
  ir::Attributes& barriers = tracer.place_operation(ring.empty).attributes;
  barriers.set(Key::arrivals, barriers.integer(Key::arrivals) + arrivals);
}

void Ring::arrive_empty(const Index& stage, SourceLocation where) {
  Tracer& tracer = in_role("release", where);
  const ir::ValueId index = tracer.use(stage.handle(), "release", where);
  State& ring = *state_;
  const bool begins = ring.releasing != tracer.role()->serial;
  ring.releasing = tracer.role()->serial;
  if (ring.pairs) {
    ring.by_threads = true;
    check_pair(ring.by_loads, true, ring.name, "release", where);
    if (begins) count_arrivals(tracer.role()->warps * State::kPair);
    const Index first = cluster_rank(where) / State::kPair * State::kPair;
    return plain(tracer, Op::mbarrier_arrive,
                 {ring.empty, index, tracer.use(first.handle(), "release", where)}, {}, where);
  }
  const std::int64_t cluster = tracer.kernel().cluster;
  const std::int64_t group = std::max<std::int64_t>(ring.group(cluster), 1);
  if (cluster % group != 0) {
    Diagnostic(where, "release: the ring \"" + ring.name + "\" is multicast to groups of " +
                          std::to_string(group) + " CTAs, which do not divide a cluster of " +
                          std::to_string(cluster))
        .token("release")
        .note(ring.where, "the ring is declared")
        .fix("give Ring::multicast a divisor of the cluster, or Kernel::ctas another cluster")
        .raise();
  }
  if (begins) count_arrivals(tracer.role()->warps * group);
  if (group == 1) {
    plain(tracer, Op::mbarrier_arrive, {ring.empty, index}, {}, where);
    return;
  }
  // Every CTA of the group writes into this one's stages, so each must hear that they are free.
  const auto first =
      group < cluster ? std::optional(cluster_rank(where) / group * group) : std::nullopt;
  for (std::int64_t i = 0; i < group; ++i) {
    const ir::ValueId cta =
        first ? tracer.use((*first + i).handle(), "release", where) : tracer.integer(i, where);
    plain(tracer, Op::mbarrier_arrive, {ring.empty, index, cta}, {}, where);
  }
}

}  // namespace tilewright
