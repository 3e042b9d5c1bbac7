#include "tilewright/hopper.h"

#include <algorithm>

#include "language/tracer.h"
#include "language/view.h"

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
  int producer = 0, consumer = 0, releasing = 0;  // the serial of the role that last was one
  std::string producer_name;
  bool multicast = false;
  Handle numbers;  // i32 beside each stage, if the ring has them
  // The position of the role that is being traced.
  std::unique_ptr<Cell<Index>> stage, phase;
};

class ExplicitTracing {
 public:
  static SharedView view(Tracer& tracer, ir::ValueId shared, const Index& stage, int rows,
                         int columns) {
    SharedView view;
    view.shared_ = tracer.handle(shared);
    view.stage_ = stage.handle();
    view.row_ = Index(0).handle();
    view.row_count_ = rows;
    view.column_count_ = columns;
    return view;
  }

  // The `view` operation; its type is the part as it lies in memory.
  static ir::ValueId emit(Tracer& tracer, const SharedView& view, const char* what,
                          SourceLocation where) {
    const ir::ValueId shared = tracer.use(view.shared_, what, where);
    const Type type = Type::of(Type::Kind::view, tracer.type(shared).dtype,
                               {view.row_count_, view.column_count_});
    return tracer.emit(
        Op::view, {shared, tracer.use(view.stage_, what, where), tracer.use(view.row_, what, where)},
        type,
        {{Key::column, std::int64_t{view.column_}},
         {Key::transposed, std::int64_t{view.transposed_}}},
        where);
  }

  // As it lies in memory, and as a product sees it.
  static std::pair<std::int64_t, std::int64_t> shape(const SharedView& view) {
    return {view.row_count_, view.column_count_};
  }
  static std::pair<std::int64_t, std::int64_t> product_shape(const SharedView& view) {
    if (view.transposed_) return {view.column_count_, view.row_count_};
    return {view.row_count_, view.column_count_};
  }
  static ir::ValueId shared(const SharedView& view) { return view.shared_.id(); }
  static SharedView rows(const SharedView& from, const IndexOperand& start, int count) {
    Tracer& tracer = Tracer::get("rows", start.where);
    const auto fail = [&](const std::string& problem) {
      Diagnostic(start.where, "rows: " + problem)
          .token("rows")
          .fix("take a multiple of 8 rows that lies inside, from a multiple of 8, before .T()")
          .raise();
    };
    const std::string of = " of a view of " + std::to_string(from.row_count_) +
                           (from.transposed_ ? " (transposed)" : "");
    if (from.transposed_ || count <= 0 || count > from.row_count_ || count % 8 != 0) {
      fail(std::to_string(count) + " rows" + of);
    }
    if (const auto first = tracer.known(tracer.use(start.index.handle(), "rows", start.where))) {
      if (*first % 8 != 0) fail("from row " + std::to_string(*first) + ", no multiple of 8");
      if (*first < 0 || *first + count > from.row_count_) {
        fail("[" + std::to_string(*first) + ", " + std::to_string(*first + count) + ")" + of);
      }
    }
    SharedView view = from;
    view.row_ =
        (Index(tracer.handle(tracer.use(from.row_, "rows", start.where))) + start).handle();
    view.row_count_ = count;
    return view;
  }
  static SharedView columns(const SharedView& from, int start, int count, SourceLocation where) {
    SharedView view = from;
    if (from.transposed_ || start < 0 || count <= 0 || start + count > from.column_count_) {
      Diagnostic(where, "columns: [" + std::to_string(start) + ", " + std::to_string(start + count) +
                         ") of a view of " + std::to_string(from.column_count_) + " columns")
          .token("columns")
          .fix("take columns that lie inside, before .T()")
          .raise();
    }
    view.column_ += start;
    view.column_count_ = count;
    return view;
  }
  static SharedView transpose(const SharedView& from) {
    SharedView view = from;
    view.transposed_ = !view.transposed_;
    return view;
  }
};

namespace {

Tracer& scheduled(const char* what, SourceLocation where) {
  Tracer& tracer = Tracer::get(what, where);
  tracer.make_scheduled(where);
  return tracer;
}

Tracer& in_role(const char* what, SourceLocation where) {
  Tracer& tracer = scheduled(what, where);
  if (!tracer.role()) {
    Diagnostic(where, std::string(what) + " is called outside a role")
        .token(what)
        .fix("call it in the body of a role of Kernel::roles")
        .raise();
  }
  return tracer;
}

ir::ValueId shared_place(Tracer& tracer, const std::string& name, DType dtype, int rows, int columns,
                         int stages, SourceLocation where) {
  if (rows <= 0 || columns <= 0 || stages <= 0 || rows % 8 != 0) {
    Diagnostic(where, "shared tile \"" + name + "\": " + std::to_string(stages) + " stages of " +
                          std::to_string(rows) + " x " + std::to_string(columns))
        .token('"' + name + '"')
        .fix("all positive, the rows a multiple of 8")
        .raise();
  }
  const std::int64_t row_bytes = std::int64_t{columns} * size_of(dtype);
  if (row_bytes % 16 != 0) {
    Diagnostic(where, "shared tile \"" + name + "\": a row of " + std::to_string(columns) + " " +
                          std::string(name_of(dtype)) + " has " + std::to_string(row_bytes) +
                          " bytes")
        .token('"' + name + '"')
        .fix("make rows a multiple of 16 bytes")
        .raise();
  }
  return tracer.place(
      Op::shared, {}, Type::of(Type::Kind::shared, dtype, {stages, rows, columns}),
      {{Key::name, name},
       {Key::layout, ir::SharedLayout::panels(rows, columns, size_of(dtype),
                                              ir::widest_swizzle(row_bytes), where)},
       {Key::stages, std::int64_t{stages}}},
      where);
}

void plain(Tracer& tracer, Op op, std::vector<ir::ValueId> operands, ir::Attributes attributes,
           SourceLocation where) {
  tracer.append(op, std::move(operands), {}, std::move(attributes), where);
}

// The tensor map through which a view's box moves: one for each tensor, box and swizzle.
ir::ValueId tensor_map(Tracer& tracer, const ResolvedView& view, const SharedView& shared,
                       const char* what, SourceLocation where) {
  const auto [rows, columns] = ExplicitTracing::shape(shared);
  const ir::ValueId shared_id = ExplicitTracing::shared(shared);
  const ir::SharedLayout layout =
      tracer.place_operation(shared_id).attributes.shared_layout();
  const DType dtype = tracer.type(shared_id).dtype;
  if (view.shape.size() != 2 || view.shape[0] != rows || view.shape[1] != columns ||
      view.sizes.back() == 0 || dtype != view.parameter->dtype) {
    std::string shape;
    for (const std::int64_t n : view.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(n);
    Diagnostic(where, std::string(what) + ": the part of " + view.parameter->name + " is " +
                          std::string(name_of(view.parameter->dtype)) + " {" + shape +
                          "}, the shared tile is " + std::string(name_of(dtype)) + " {" +
                          std::to_string(rows) + ", " + std::to_string(columns) + "}")
        .token(what)
        .note(view.parameter->where, view.parameter->name + " is declared")
        .fix("both must agree; the innermost axis is the tile's columns")
        .raise();
  }
  const auto panels = layout.as_panels();
  std::vector<std::int64_t> box;
  for (const std::int64_t size : view.sizes) box.push_back(size == 0 ? 1 : size);
  box.back() = std::min(columns, panels->span);
  if (rows > 256) {
    Diagnostic(where, std::string(what) + ": " + std::to_string(rows) +
                          " rows; one copy takes at most 256")
        .token(what).fix("copy runs of rows: view.rows(start, 256)").raise();
  }
  const std::int64_t swizzle = panels->swizzle_bytes;
  std::string name = view.parameter->name + "_" + std::to_string(rows) + "x" +
                     std::to_string(box.back());
  return tracer.tensor_map(view.tensor, {{Key::name, std::move(name)},
                                         {Key::box, std::move(box)},
                                         {Key::swizzle, swizzle}},
                           where);
}

}  // namespace

SharedView SharedView::rows(const IndexOperand& start, int count) const {
  return ExplicitTracing::rows(*this, start, count);
}
SharedView SharedView::columns(int start, int count, SourceLocation where) const {
  return ExplicitTracing::columns(*this, start, count, where);
}
SharedView SharedView::T() const { return ExplicitTracing::transpose(*this); }

SharedTile::SharedTile(Kernel&, std::string name, DType dtype, int rows, int columns,
                       SourceLocation where) {
  Tracer& tracer = scheduled("SharedTile", where);
  const ir::ValueId shared = shared_place(tracer, name, dtype, rows, columns, 1, where);
  SharedView::operator=(
      ExplicitTracing::view(tracer, shared, Index(0, where), rows, columns));
}

Ring::Ring(Kernel&, std::string name, Stages stages, std::vector<TileShape> tiles,
           SourceLocation where)
    : state_(std::make_shared<State>()) {
  Tracer& tracer = scheduled("Ring", where);
  State& ring = *state_;
  ring.name = std::move(name);
  ring.stages = stages.count;
  ring.where = where;
  if (tiles.empty()) {
    Diagnostic(where, "the ring \"" + ring.name + "\" has no tile")
        .token("Ring").fix("give the tiles of one stage: {{dtype, rows, columns}}").raise();
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TileShape& tile = tiles[i];
    const std::string part = tiles.size() == 1 ? ring.name : ring.name + std::to_string(i);
    ring.parts.push_back({shared_place(tracer, part, tile.dtype, tile.rows, tile.columns,
                                       stages.count, where),
                          tile.rows, tile.columns});
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
    ring->stage = begin ? std::make_unique<Cell<Index>>(Index(0, ring->where), ring->where) : nullptr;
    ring->phase = begin ? std::make_unique<Cell<Index>>(Index(0, ring->where), ring->where) : nullptr;
  });
}

Ring::~Ring() = default;

Ring& Ring::numbered() {
  State& ring = *state_;
  Tracer& tracer = scheduled("numbered", ring.where);
  ring.numbers = tracer.handle(tracer.place(
      Op::shared, {}, Type::of(Type::Kind::shared, i32, {1, 1, ring.stages}),
      {{Key::name, ring.name + "_numbers"},
       {Key::layout, ir::SharedLayout::row_major({1, ring.stages}, 4)},
       {Key::stages, std::int64_t{1}}},
      ring.where));
  return *this;
}

Ring& Ring::multicast() {
  state_->multicast = true;
  return *this;
}

Slot Ring::enter(bool producing, const char* what, SourceLocation where) {
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
  mine = tracer.role()->serial;
  if (producing) ring.producer_name = tracer.role()->name;
  const Tracer::At at(tracer, where);
  const Index stage = *ring.stage, phase = *ring.phase;
  // Fresh barriers let a wait for parity 1 pass: the producer is one phase ahead.
  const Index parity = producing ? 1 - phase : phase;
  tracer.append(Op::mbarrier_wait,
                {producing ? ring.empty : ring.full, tracer.use(stage.handle(), what, where),
                 tracer.use(parity.handle(), what, where)},
                {}, {}, where);
  const Index next = stage + 1;
  const Condition wraps = next == ring.stages;
  *ring.stage = select(wraps, 0, next);
  *ring.phase = select(wraps, 1 - phase, phase);
  std::vector<SharedView> parts;
  for (const State::Part& part : ring.parts) {
    parts.push_back(ExplicitTracing::view(tracer, part.shared, stage, part.rows, part.columns));
  }
  return Slot(stage, std::move(parts), ring.numbers);
}

Index Slot::number(SourceLocation where) const {
  Tracer& tracer = in_role("number", where);
  if (!numbers_.tracer()) {
    Diagnostic(where, "number: the ring's stages carry none").token("number")
        .fix("declare it as Ring(...).numbered()").raise();
  }
  return Index(tracer.handle(tracer.emit(Op::shared_load,
                                         {tracer.use(numbers_, "number", where),
                                          tracer.use(stage_.handle(), "number", where)},
                                         Type::scalar(i32), {}, where)));
}

void Ring::fill(const IndexOperand* number, const std::function<void(const Slot&)>* loads,
                SourceLocation where) {
  const Slot slot = enter(true, "produce", where);
  Tracer& tracer = Tracer::get("produce", where);
  const ir::ValueId stage = tracer.use(slot.stage().handle(), "produce", where);
  if ((number != nullptr) != (state_->numbers.tracer() != nullptr)) {
    Diagnostic(where, "produce: the ring \"" + state_->name +
                          (number ? "\" carries no numbers, but one is given"
                                  : "\" carries numbers, but none is given"))
        .token("produce").fix("declare it with .numbered() and give every stage its number").raise();
  }
  // Before the arrival that publishes it.
  if (number) {
    plain(tracer, Op::shared_store,
          {tracer.use(state_->numbers, "produce", where), stage,
           tracer.use(number->index.handle(), "produce", where)},
          {}, where);
  }
  if (!loads) return plain(tracer, Op::mbarrier_arrive, {state_->full, stage}, {}, where);
  // The transaction count is known once the loads are recorded, but expected before them.
  const std::size_t at = tracer.body().size();
  tracer.append(Op::mbarrier_expect_tx, {state_->full, stage}, {}, {}, where);
  tracer.filling = Tracer::Filling{state_->full, stage, 0, tracer.depth(), state_->multicast};
  (*loads)(slot);
  const std::int64_t bytes = tracer.filling->bytes;
  tracer.filling.reset();
  if (bytes == 0) {
    Diagnostic(where, "produce: nothing is loaded into the ring \"" + state_->name + "\"")
        .token("produce")
        .fix("call tma_load inside")
        .raise();
  }
  tracer.body()[at].attributes.set(Key::bytes, bytes);
}

void Ring::produce(const std::function<void(const Slot&)>& loads, SourceLocation where) {
  fill(nullptr, &loads, where);
}
void Ring::produce(const IndexOperand& number, const std::function<void(const Slot&)>& loads) {
  fill(&number, &loads, number.where);
}
void Ring::produce(const IndexOperand& number) { fill(&number, nullptr, number.where); }

Slot Ring::consume(SourceLocation where) { return enter(false, "consume", where); }

void Ring::release(const Index& stage, SourceLocation where) {
  Tracer& tracer = in_role("release", where);
  const ir::ValueId index = tracer.use(stage.handle(), "release", where);
  State& ring = *state_;
  const std::int64_t cluster = ring.multicast ? tracer.kernel().cluster : 1;
  if (ring.releasing != tracer.role()->serial) {
    ring.releasing = tracer.role()->serial;
    ir::Attributes& barriers = tracer.place_operation(ring.empty).attributes;
    barriers.set(Key::arrivals,
                 barriers.integer(Key::arrivals) + tracer.role()->warps * cluster);
  }
  if (cluster == 1) {
    plain(tracer, Op::mbarrier_arrive, {ring.empty, index}, {}, where);
    return;
  }
  // Every CTA of the cluster writes into this one's stages, so each must hear that they are free.
  for (std::int64_t cta = 0; cta < cluster; ++cta) {
    plain(tracer, Op::mbarrier_arrive, {ring.empty, index, tracer.integer(cta, where)}, {}, where);
  }
}

void tma_load(const TensorView& from, const SharedView& to, TmaOptions options,
              SourceLocation where) {
  Tracer& tracer = in_role("tma_load", where);
  if (!tracer.filling || tracer.filling->depth != tracer.depth()) {
    Diagnostic(where, tracer.filling ? "tma_load: inside a loop or condition of Ring::produce"
                                     : "tma_load: outside Ring::produce")
        .token("tma_load")
        .fix("a stage's loads are counted by its full barrier: call it in the function given to "
             "produce, unconditionally")
        .raise();
  }
  const ResolvedView view = resolve(tracer, from, "tma_load", where);
  const ir::ValueId shared = ExplicitTracing::emit(tracer, to, "tma_load", where);
  const ir::ValueId map = tensor_map(tracer, view, to, "tma_load", where);
  std::vector<ir::ValueId> operands{map, shared, tracer.filling->barriers, tracer.filling->stage};
  operands.insert(operands.end(), view.starts.begin(), view.starts.end());
  const std::int64_t cluster = tracer.kernel().cluster;
  const bool multicast = options.multicast && cluster > 1;
  ir::Attributes attributes{{Key::cache, std::int64_t(options.cache)}};
  if (multicast && !tracer.filling->multicast) {
    Diagnostic(where, "tma_load: multicast into a ring that is not multicast").token("tma_load")
        .fix("declare it as Ring(...).multicast()").raise();
  }
  if (multicast) attributes.set(Key::multicast, (std::int64_t{1} << cluster) - 1);
  plain(tracer, Op::tma_load_tile, std::move(operands), std::move(attributes), where);
  const auto [rows, columns] = ExplicitTracing::shape(to);
  // Each CTA of the cluster sends its share to all of them.
  tracer.filling->bytes +=
      rows * columns * size_of(view.parameter->dtype) * (multicast ? cluster : 1);
}

void tma_store(const TensorView& to, const SharedView& from, SourceLocation where) {
  Tracer& tracer = in_role("tma_store", where);
  const ResolvedView view = resolve(tracer, to, "tma_store", where);
  if (view.parameter->kind == ir::Parameter::Kind::in) {
    Diagnostic(where, "tma_store: " + view.parameter->name + " is an input").token("tma_store")
        .note(view.parameter->where, view.parameter->name + " is declared")
        .fix("declare it with Kernel::out").raise();
  }
  const ir::ValueId shared = ExplicitTracing::emit(tracer, from, "tma_store", where);
  std::vector<ir::ValueId> operands{tensor_map(tracer, view, from, "tma_store", where), shared};
  operands.insert(operands.end(), view.starts.begin(), view.starts.end());
  plain(tracer, Op::tma_store_tile, std::move(operands), {}, where);
}

void bulk_commit(SourceLocation where) {
  plain(in_role("bulk_commit", where), Op::bulk_commit, {}, {}, where);
}
void bulk_wait_read(int groups, SourceLocation where) {
  plain(in_role("bulk_wait_read", where), Op::bulk_wait, {},
        {{Key::count, std::int64_t{groups}}, {Key::read, std::int64_t{1}}}, where);
}
void bulk_wait(int groups, SourceLocation where) {
  plain(in_role("bulk_wait", where), Op::bulk_wait, {},
        {{Key::count, std::int64_t{groups}}, {Key::read, std::int64_t{0}}}, where);
}

namespace {

struct ProductOperand {
  ir::ValueId id;
  DType dtype;
  std::int64_t rows, columns;
};

ProductOperand shared_operand(Tracer& tracer, const SharedView& view, SourceLocation where) {
  const ir::ValueId id = ExplicitTracing::emit(tracer, view, "wgmma", where);
  const auto [rows, columns] = ExplicitTracing::product_shape(view);
  return {id, tracer.type(id).dtype, rows, columns};
}

ProductOperand register_operand(Tracer& tracer, const TileOperand& tile, SourceLocation where) {
  if (tile.is_number()) {
    Diagnostic(where, "wgmma: a is a number").token("wgmma").fix("use * for scaling").raise();
  }
  const ir::ValueId id = tracer.use(tile.handle, "wgmma", where);
  const Type& type = tracer.type(id);
  if (type.shape.size() != 2) {
    Diagnostic(where, "wgmma: a does not have two axes: " + type.to_string()).token("wgmma")
        .fix("reshape({64, k}) gives it two").raise();
  }
  return {id, type.dtype, type.shape[0], type.shape[1]};
}

Pending product(Tracer& tracer, const ProductOperand& a, const SharedView& b_view,
                const Handle* accumulator, SourceLocation where) {
  const ProductOperand b = shared_operand(tracer, b_view, where);
  const auto shape = [](const ProductOperand& o) {
    return std::string(name_of(o.dtype)) + " {" + std::to_string(o.rows) + ", " +
           std::to_string(o.columns) + "}";
  };
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "wgmma: " + problem + ": a " + shape(a) + " x b " + shape(b))
        .token("wgmma").fix(fix).raise();
  };
  if (a.columns != b.rows) fail("inner dimensions differ", "b is {k, n}; .T() transposes a view");
  if (a.dtype != b.dtype) fail("dtypes differ", "load both with one dtype");
  if (a.dtype != bf16 && a.dtype != f16 && a.dtype != f8e4m3) {
    fail("no such product", "use bf16, f16 or f8e4m3");
  }
  const std::int64_t k = 32 / size_of(a.dtype);
  if (a.rows != 64) fail("a warpgroup multiplies 64 rows", "take a.rows(64 * group, 64)");
  if (a.columns % k != 0) fail("k is no multiple of " + std::to_string(k), "pad the tile");
  if (b.columns % 8 != 0 || b.columns > 256) fail("n is no multiple of 8 up to 256", "split b");
  std::vector<ir::ValueId> operands{a.id, b.id};
  const Type result = Type::of(Type::Kind::pending, f32, {a.rows, b.columns});
  if (accumulator) {
    operands.push_back(tracer.use(*accumulator, "wgmma", where));
    const Type& type = tracer.type(operands.back());
    if (type.dtype != f32 || type.shape != result.shape) {
      fail("the accumulator is " + type.to_string(), "make it with zeros({64, n})");
    }
  }
  return Pending(tracer.handle(tracer.emit(Op::wgmma, std::move(operands), result, {}, where)));
}

}  // namespace

Pending wgmma(const SharedView& a, const SharedView& b, SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, nullptr, where);
}
Pending wgmma(const TileOperand& a, const SharedView& b, SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, nullptr, where);
}
Pending wgmma(const SharedView& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, &accumulator.handle(), where);
}
Pending wgmma(const TileOperand& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, &accumulator.handle(), where);
}
Pending wgmma(const SharedView& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, &accumulator.handle(), where);
}

namespace {

Type as_tile(Type type) {
  type.kind = Type::Kind::tile;
  return type;
}

}  // namespace

Tile wait(const Pending& pending, SourceLocation where) {
  Tracer& tracer = in_role("wait", where);
  const ir::ValueId id = tracer.use(pending.handle(), "wait", where);
  return Tile(tracer.handle(tracer.emit(Op::wait, {id}, as_tile(tracer.type(id)), {}, where)));
}

void retire(const Pending& pending, SourceLocation where) {
  Tracer& tracer = in_role("retire", where);
  plain(tracer, Op::retire, {tracer.use(pending.handle(), "retire", where)}, {}, where);
}

Pending as_pending(const TileOperand& tile, SourceLocation where) {
  Tracer& tracer = in_role("as_pending", where);
  const ir::ValueId id = tracer.use(tile.handle, "as_pending", where);
  Type type = tracer.type(id);
  type.kind = Type::Kind::pending;
  return Pending(tracer.handle(tracer.emit(Op::as_pending, {id}, type, {}, where)));
}

void store(const SharedView& to, const TileOperand& tile, SourceLocation where) {
  Tracer& tracer = in_role("store", where);
  const ir::ValueId source = tracer.use(tile.handle, "store", where);
  const ir::ValueId view = ExplicitTracing::emit(tracer, to, "store", where);
  const Type &from = tracer.type(source), &place = tracer.type(view);
  if (from.dtype != place.dtype || from.shape != place.shape) {
    Diagnostic(where, "store: the tile is " + from.to_string() + ", the shared view " +
                          place.to_string())
        .token("store").fix("both must agree; .cast(dtype) converts").raise();
  }
  plain(tracer, Op::store_tile, {source, view}, {}, where);
}

Tile load(const SharedView& from, SourceLocation where) {
  Tracer& tracer = in_role("load", where);
  const ir::ValueId view = ExplicitTracing::emit(tracer, from, "load", where);
  return Tile(tracer.handle(
      tracer.emit(Op::load_tile, {view}, as_tile(tracer.type(view)), {}, where)));
}

NamedBarrier::NamedBarrier(Kernel&, int threads, int count, SourceLocation where)
    : threads_(threads), count_(count) {
  Tracer& tracer = scheduled("NamedBarrier", where);
  if (count <= 0) {
    Diagnostic(where, "NamedBarrier: " + std::to_string(count) + " barriers")
        .token("NamedBarrier").fix("ask for one or more").raise();
  }
  if (threads <= 0 || threads % 32 != 0) {
    Diagnostic(where, "NamedBarrier: " + std::to_string(threads) + " threads")
        .token("NamedBarrier").fix("whole warps take part: a multiple of 32").raise();
  }
  first_ = tracer.next_named_barrier;
  tracer.next_named_barrier += count;
  if (tracer.next_named_barrier > 16) {
    Diagnostic(where, "NamedBarrier: " + std::to_string(tracer.next_named_barrier - 1) +
                          " named barriers are asked for")
        .token("NamedBarrier").fix("a CTA has 15 beside its own, barrier 0").raise();
  }
}

namespace {

void named(Op op, const IndexOperand& index, int first, int threads, int count) {
  const char* what = op == Op::named_sync ? "sync" : "arrive";
  Tracer& tracer = in_role(what, index.where);
  const auto known = tracer.known(tracer.use(index.index.handle(), what, index.where));
  if (known && (*known < 0 || *known >= count)) {
    Diagnostic(index.where, std::string(what) + ": barrier " + std::to_string(*known) + " of " +
                                std::to_string(count))
        .token(what).fix("barriers count from 0 to " + std::to_string(count - 1)).raise();
  }
  plain(tracer, op, {tracer.use(index.index.handle(), what, index.where)},
        {{Key::first, std::int64_t{first}},
         {Key::threads, std::int64_t{threads}},
         {Key::count, std::int64_t{count}}},
        index.where);
}

}  // namespace

void NamedBarrier::sync(const IndexOperand& index) {
  named(Op::named_sync, index, first_, threads_, count_);
}
void NamedBarrier::arrive(const IndexOperand& index) {
  named(Op::named_arrive, index, first_, threads_, count_);
}

void elect(const std::function<void()>& body, SourceLocation where) {
  in_role("elect", where).trace_block(Op::elect, {}, body, where);
}
void fence_proxy_async(SourceLocation where) {
  plain(in_role("fence_proxy_async", where), Op::fence_proxy_async, {}, {}, where);
}
void warp_sync(SourceLocation where) {
  plain(in_role("warp_sync", where), Op::warp_sync, {}, {}, where);
}
void cluster_sync(SourceLocation where) {
  plain(scheduled("cluster_sync", where), Op::cluster_sync, {}, {}, where);
}

namespace {

Index special(Op op, const char* what, SourceLocation where) {
  Tracer& tracer = scheduled(what, where);
  return Index(tracer.handle(tracer.emit(op, {}, Type::scalar(i32), {}, where)));
}

}  // namespace

Index cta_index(SourceLocation where) { return special(Op::cta_index, "cta_index", where); }
Index cta_count(SourceLocation where) { return special(Op::cta_count, "cta_count", where); }
Index cluster_rank(SourceLocation where) { return special(Op::cluster_rank, "cluster_rank", where); }
Index warp_index(SourceLocation where) { return special(Op::warp_index, "warp_index", where); }

SharedIntegers::SharedIntegers(Kernel&, std::string name, int count, SourceLocation where)
    : count_(count) {
  Tracer& tracer = scheduled("SharedIntegers", where);
  if (count <= 0) {
    Diagnostic(where, "\"" + name + "\": " + std::to_string(count) + " integers")
        .token("SharedIntegers").fix("ask for one or more").raise();
  }
  shared_ = tracer.handle(tracer.place(
      Op::shared, {}, Type::of(Type::Kind::shared, i32, {1, 1, count}),
      {{Key::name, std::move(name)},
       {Key::layout, ir::SharedLayout::row_major({1, count}, 4)},
       {Key::stages, std::int64_t{1}}},
      where));
}

Index SharedIntegers::load(const IndexOperand& element, SourceLocation where) const {
  Tracer& tracer = in_role("load", where);
  return Index(tracer.handle(tracer.emit(Op::shared_load,
                                         {tracer.use(shared_, "load", where),
                                          tracer.use(element.index.handle(), "load", where)},
                                         Type::scalar(i32), {}, where)));
}

void SharedIntegers::store(const IndexOperand& element, const IndexOperand& value,
                           SourceLocation where) {
  Tracer& tracer = in_role("store", where);
  plain(tracer, Op::shared_store,
        {tracer.use(shared_, "store", where), tracer.use(element.index.handle(), "store", where),
         tracer.use(value.index.handle(), "store", where)},
        {}, where);
}

Dim multiprocessors() { return Dim::symbol(ir::kMultiprocessors, at_least(1)); }

void Kernel::ctas(const Dim& count, int cluster, SourceLocation where) {
  Tracer& tracer = scheduled("ctas", where);
  tracer.require_no_grid("ctas", where);
  tracer.check_dim(count, where);
  if (cluster < 1 || cluster > 8) {
    Diagnostic(where, "ctas: a cluster of " + std::to_string(cluster)).token("ctas")
        .fix("1 to 8 CTAs").raise();
  }
  tracer.kernel().grid = {count};
  tracer.kernel().cluster = cluster;
}

void Kernel::roles(std::initializer_list<RoleSpec> roles, SourceLocation where) {
  Tracer& tracer = scheduled("roles", where);
  const auto refuse = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "roles: " + problem).token("roles").fix(fix).raise();
  };
  if (tracer.role()) {
    refuse("inside the role \"" + tracer.role()->name + "\"", "roles stand side by side in one call");
  }
  if (tracer.nested()) {
    refuse("inside a loop or condition", "loop inside the roles: each runs once a CTA");
  }
  if (tracer.kernel().threads != 0) {
    refuse("the roles of \"" + tracer.kernel().name + "\" are declared twice", "give them in one call");
  }
  if (roles.size() == 0) refuse("no role is given", "give at least one");
  int warp = 0, budget = 0;
  std::int64_t registers = 0;
  for (const RoleSpec& role : roles) {
    const auto fail = [&](const std::string& problem, const std::string& fix) {
      Diagnostic error(role.where, "role \"" + role.name + "\": " + problem);
      for (const RoleSpec& each : roles) {
        error.note({}, "\"" + each.name + "\" takes " + std::to_string(each.warps) + " warps, " +
                           std::to_string(each.warps * 32 * each.registers) + " registers");
      }
      error.token('"' + role.name + '"').fix(fix).raise();
    };
    for (const RoleSpec* other = roles.begin(); other != &role; ++other) {
      if (other->name == role.name) fail("two roles are named \"" + role.name + "\"", "rename one");
    }
    if (role.warps <= 0 || (role.warps > 4 && role.warps % 4 != 0)) {
      fail(std::to_string(role.warps) + " warps", "1 to 4 warps, or whole warpgroups");
    }
    if (role.registers < 24 || role.registers > 256 || role.registers % 8 != 0) {
      fail(std::to_string(role.registers) + " registers a thread",
           "24 to 256, a multiple of 8 (setmaxnreg)");
    }
    // A warpgroup's warps share one budget: small roles go together, others start a warpgroup.
    const bool joins = warp % 4 != 0 && warp % 4 + role.warps <= 4 && budget == role.registers;
    if (!joins) warp = (warp + 3) / 4 * 4;
    budget = role.registers;
    constexpr int kThreads = 1024, kRegisters = 65536;  // of a CTA
    const int threads = (warp + role.warps + 3) / 4 * 128;
    if (threads > kThreads) {
      fail("the roles so far take " + std::to_string(threads) + " threads of " +
               std::to_string(kThreads), "use fewer warps");
    }
    registers += role.warps * 32 * role.registers;
    if (registers > kRegisters) {
      fail("the roles so far take " + std::to_string(registers) + " registers of " +
               std::to_string(kRegisters), "lower the budgets");
    }
    tracer.trace_role({{Key::name, role.name},
                       {Key::first_warp, std::int64_t{warp}},
                       {Key::warps, std::int64_t{role.warps}},
                       {Key::registers, std::int64_t{role.registers}}},
                      role.body, role.where);
    warp += role.warps;
  }
  tracer.kernel().threads = (warp + 3) / 4 * 128;
}

}  // namespace tilewright
