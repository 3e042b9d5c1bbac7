#include "tilewright/kernel.h"
#include "tilewright/function_ref.h"

#include <algorithm>
#include <exception>

#include "ir/schedule.h"
#include "language/explicit_tracing.h"
#include "language/names.h"
#include "language/tracer.h"
#include "language/view.h"
#include "tilewright/asynchronous.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

Selector::Selector(const Block& block)
    : size(block.size()),
      start(block.start().handle()),
      limit(block.limit().handle()),
      packed(block.packed()) {}
Selector::Selector(const Index& index) : start(index.handle()) {}
Selector::Selector(const Cell<Index>& index) : start(static_cast<Index>(index).handle()) {}
Selector::Selector(int index, SourceLocation where) : start(Index(index, where).handle()) {}

namespace {

// One that is known while tracing, of the axis that was resolved last.
void check_index(const Tracer& tracer, const ResolvedView& view, std::size_t axis, const char* what,
                 SourceLocation where) {
  const std::optional<std::int64_t> index = tracer.known(view.starts.back());
  const ir::Parameter& parameter = *view.parameter;
  const Dim& extent = parameter.shape[axis];
  if (!index || (*index >= 0 && (!extent.is_constant() || *index < extent.constant()))) return;
  Diagnostic(where, std::string(what) + ": index " + std::to_string(*index) + " on axis " +
                        std::to_string(axis) + " of " + parameter.name + ", whose size is " +
                        extent.to_string())
      .token(parameter.name)
      .note(parameter.where, parameter.name + " is declared")
      .fix(extent.is_constant() ? "take an index from 0 to " + std::to_string(extent.constant() - 1)
                                : "indices count from 0, and end one before the size")
      .raise();
}

}  // namespace

ResolvedView resolve(Tracer& tracer, const TensorView& view, const char* what,
                     SourceLocation where) {
  ResolvedView resolved;
  resolved.tensor = tracer.use(view.tensor(), what, where);
  resolved.parameter = tracer.kernel().parameter_of(resolved.tensor);
  const ir::Parameter& parameter = *resolved.parameter;
  const std::size_t given = view.selectors().size();
  if (given != parameter.shape.size()) {
    Diagnostic(where, std::string(what) + ": " + parameter.name + " has " +
                          std::to_string(parameter.shape.size()) + " axes, but " +
                          std::to_string(given) +
                          (given == 1 ? " selector is given" : " selectors are given"))
        .token(parameter.name)
        .note(parameter.where, parameter.name + " is declared")
        .fix("give one index, block or `all` an axis")
        .raise();
  }
  for (std::size_t axis = 0; axis < parameter.shape.size(); ++axis) {
    const Selector& selector = view.selectors()[axis];
    const Dim& extent = parameter.shape[axis];
    if (selector.whole) {
      if (!extent.is_constant()) {
        Diagnostic(where, std::string(what) + ": `all` on axis " + std::to_string(axis) + " of " +
                              parameter.name + ", whose size " + extent.to_string() +
                              " is symbolic")
            .token("all")
            .note(parameter.where, parameter.name + " is declared")
            .fix("take a block of it: " + extent.to_string() + ".block(i, size)")
            .raise();
      }
      resolved.starts.push_back(tracer.integer(0, where));
      resolved.limits.push_back(tracer.integer(extent.constant(), where));
      resolved.sizes.push_back(extent.constant());
      resolved.shape.push_back(extent.constant());
      continue;
    }
    if (selector.packed && !(*selector.packed == extent)) {
      Diagnostic(where, std::string(what) + ": axis " + std::to_string(axis) + " of " +
                            parameter.name + " is " + extent.to_string() +
                            ", and the block is of a sequence of " + selector.packed->to_string())
          .token(parameter.name)
          .note(parameter.where, parameter.name + " is declared")
          .fix("take the block of the sequence that the axis packs")
          .raise();
    }
    if (selector.limit.tracer() && selector.size <= 0) {
      Diagnostic(where, std::string(what) + ": the block on axis " + std::to_string(axis) + " of " +
                            parameter.name + " has the size " + std::to_string(selector.size) +
                            ", which is not positive")
          .token(parameter.name)
          .fix("give the number of elements of a block")
          .raise();
    }
    resolved.starts.push_back(tracer.use(selector.start, what, where));
    resolved.sizes.push_back(selector.size);
    if (selector.size == 0) check_index(tracer, resolved, axis, what, where);
    if (selector.size > 0) {
      resolved.limits.push_back(tracer.use(selector.limit, what, where));
      resolved.shape.push_back(selector.size);
    } else {
      resolved.limits.push_back(tracer.dim(extent, where));
    }
  }
  return resolved;
}

namespace {

std::vector<ir::ValueId> operands_of(const ResolvedView& view, std::vector<ir::ValueId> leading) {
  leading.insert(leading.end(), view.starts.begin(), view.starts.end());
  leading.insert(leading.end(), view.limits.begin(), view.limits.end());
  return leading;
}

void check_cached(const ir::Parameter& tensor, Cache cache, SourceLocation where) {
  if (cache == Cache::evict_last) {
    Diagnostic(where, "load: Cache::evict_last, and registers are loaded with evict_first or none")
        .token("evict_last")
        .fix("leave it out, or copy through shared memory: tma_load takes it")
        .raise();
  }
  if (tensor.kind == ir::Parameter::Kind::in) return;
  Diagnostic(where, "load: Cache::evict_first of " + tensor.name + ", which the kernel may write")
      .token(tensor.name)
      .note(tensor.where, tensor.name + " is declared")
      .fix("leave it out, or declare the tensor with Kernel::in")
      .raise();
}

}  // namespace

Tile load(const TensorView& view, SourceLocation where) { return load(view, Cache::normal, where); }

Tile load(const TensorView& view, Cache cache, SourceLocation where) {
  Tracer& tracer = Tracer::get("load", where);
  if (tracer.kernel().form == ir::Form::scheduled) in_role("load", where);
  const ResolvedView from = resolve(tracer, view, "load", where);
  if (from.parameter->kind == ir::Parameter::Kind::out) {
    Diagnostic(where, "load: " + from.parameter->name + " is an output")
        .token(from.parameter->name)
        .note(from.parameter->where, from.parameter->name + " is declared")
        .fix("declare it with Kernel::inout")
        .raise();
  }
  ir::Attributes attributes{{ir::Key::sizes, from.sizes}};
  if (cache != Cache::normal) {
    check_cached(*from.parameter, cache, where);
    attributes.set(ir::Key::cache, std::int64_t(cache));
  }
  tracer.note_access(*from.parameter, Tracer::Access::other, "load", where);
  return Tile(tracer.handle(tracer.emit(Op::load, operands_of(from, {from.tensor}),
                                        Type::tile(from.parameter->dtype, from.shape),
                                        std::move(attributes), where)));
}

void store(const TensorView& view, const TileOperand& tile, SourceLocation where) {
  Tracer& tracer = Tracer::get("store", where);
  if (tracer.kernel().form == ir::Form::scheduled) in_role("store", where);
  const ResolvedView to = resolve(tracer, view, "store", where);
  if (to.parameter->kind == ir::Parameter::Kind::in) {
    Diagnostic(where, "store: " + to.parameter->name + " is an input")
        .token(to.parameter->name)
        .note(to.parameter->where, to.parameter->name + " is declared")
        .fix("declare it with Kernel::out or Kernel::inout")
        .raise();
  }
  tracer.note_access(*to.parameter, Tracer::Access::other, "store", where);
  ir::ValueId source =
      tile.is_number()
          ? tracer.emit(Op::splat,
                        {tracer.number(tile.number, to.parameter->dtype, "store", where)},
                        Type::tile(to.parameter->dtype, to.shape), {}, where)
          : tracer.use(tile.handle, "store", where);
  if (tracer.type(source).is_scalar()) {
    source = tracer.emit(Op::splat, {source}, Type::tile(tracer.type(source).dtype, to.shape), {},
                         where);
  }
  Type type = tracer.type(source);
  if (type.shape != to.shape) {
    const Type expected = Type::tile(to.parameter->dtype, to.shape);
    Diagnostic(where, "store: the tile is " + type.to_string() + ", the place in " +
                          to.parameter->name + " is " + expected.to_string())
        .token("store")
        .note(tracer.location(source), "the tile is computed")
        .fix("store a tile of the view's shape")
        .raise();
  }
  if (type.dtype != to.parameter->dtype) {
    if (!is_float(type.dtype) || !is_float(to.parameter->dtype)) {
      Diagnostic(where, "store: the tile is " + std::string(name_of(type.dtype)) + ", " +
                            to.parameter->name + " is " + std::string(name_of(to.parameter->dtype)))
          .token("store")
          .fix("convert it with .cast(" + std::string(name_of(to.parameter->dtype)) + ")")
          .raise();
    }
    type.dtype = to.parameter->dtype;  // floats round to the tensor's dtype
    source = tracer.emit(Op::cast, {source}, type, {}, where);
  }
  tracer.append(Op::store, operands_of(to, {to.tensor, source}), {}, {{ir::Key::sizes, to.sizes}},
                where);
}

namespace {

// Checks and records an addition; `what` is what the author has called.
void record_addition(Tracer& tracer, const ResolvedView& to, const Tile& tile, bool ordered,
                     const char* what, SourceLocation where) {
  const std::string call(what), &name = to.parameter->name;
  const ir::ValueId source = tracer.use(tile.handle(), what, where);
  const Type expected = Type::tile(to.parameter->dtype, to.shape);
  if (!(tracer.type(source) == expected)) {
    Diagnostic(where, call + ": the tile is " + tracer.type(source).to_string() +
                          ", the place in " + name + " is " + expected.to_string())
        .token(call)
        .note(tracer.location(source), "the tile is computed")
        .fix("add a tile of the view's shape and dtype; .cast(dtype) converts")
        .raise();
  }
  // Other dtypes are added in an order that the author says (ordered_tiles.cpp).
  const DType dtype = to.parameter->dtype;
  if (!is_float(dtype) || size_of(dtype) == 1) {
    const bool is_explicit = tracer.kernel().form == ir::Form::scheduled;
    Diagnostic(where, call + ": there is no add of " + std::string(name_of(dtype)) +
                          ", but add of f32, bf16 and f16")
        .token(call)
        .note(to.parameter->where, name + " is declared")
        .fix(std::string("add to a tensor of f32") +
             (is_explicit ? "; red(view, tile, order) adds others" : ""))
        .raise();
  }
  ir::Attributes attributes = {{ir::Key::function, Op::add}, {ir::Key::sizes, to.sizes}};
  if (ordered) attributes.set(ir::Key::ordered, std::int64_t{1});
  tracer.append(Op::red_tile, operands_of(to, {to.tensor, source}), {}, std::move(attributes),
                where);
}

void check_is_inout(const ResolvedView& to, const char* what, SourceLocation where) {
  if (to.parameter->kind == ir::Parameter::Kind::inout) return;
  const std::string& name = to.parameter->name;
  Diagnostic(where, std::string(what) + ": " + name + " is not declared as Kernel::inout")
      .token(what)
      .note(to.parameter->where, name + " is declared")
      .fix("what is added to is read and written: declare it as inout")
      .raise();
}

}  // namespace

void atomic_add(const TensorView& view, const Tile& tile, Order order, SourceLocation where) {
  Tracer& tracer = Tracer::get("atomic_add", where);
  const ResolvedView to = resolve(tracer, view, "atomic_add", where);
  check_is_inout(to, "atomic_add", where);
  tracer.make_scheduled(where);
  record_addition(tracer, to, tile, order == Order::blocks, "atomic_add", where);
}

void add(const TensorView& view, const Tile& tile, Order order, SourceLocation where) {
  Tracer& tracer = Tracer::get("add", where);
  if (tracer.kernel().form == ir::Form::scheduled) {
    Diagnostic(where, "add: it has no place at the explicit level")
        .token("add")
        .fix("use atomic_add(view, tile) of asynchronous.h, which adds in any order")
        .raise();
  }
  const ResolvedView to = resolve(tracer, view, "add", where);
  check_is_inout(to, "add", where);
  const bool ordered = order == Order::blocks;
  tracer.note_access(*to.parameter,
                     ordered ? Tracer::Access::addition_in_order : Tracer::Access::addition_in_any,
                     "add", where);
  record_addition(tracer, to, tile, ordered, "add", where);
}

namespace {

Index record_load_index(const TensorView& element, ir::Attributes attributes,
                        SourceLocation where) {
  Tracer& tracer = Tracer::get("load_index", where);
  const ResolvedView from = resolve(tracer, element, "load_index", where);
  if (from.parameter->dtype != i32 || !from.shape.empty()) {
    Diagnostic(where, "load_index: " + from.parameter->name + " is not indexed to an i32 element")
        .token("load_index")
        .note(from.parameter->where, from.parameter->name + " is declared")
        .fix("declare it as in(name, i32, {...}) and give one index an axis: offsets(i)")
        .raise();
  }
  std::vector<ir::ValueId> operands{from.tensor};
  operands.insert(operands.end(), from.starts.begin(), from.starts.end());
  return Index(tracer.handle(
      tracer.emit(Op::load_index, std::move(operands), Type::scalar(i32), attributes, where)));
}

}  // namespace

Index load_index(const TensorView& element, SourceLocation where) {
  return record_load_index(element, {}, where);
}

Index load_index(const TensorView& element, const Counted& counted, SourceLocation where) {
  ir::Attributes attributes{{Key::counted, std::int64_t{1}}};
  if (counted.ascending) attributes.set(Key::ascending, std::int64_t{1});
  if (counted.at_most) attributes.set(Key::at_most, *counted.at_most);
  return record_load_index(element, std::move(attributes), where);
}

Index atomic_add(const TensorView& element, const IndexOperand& value, SourceLocation where) {
  Tracer& tracer = Tracer::get("atomic_add", where);
  const ResolvedView to = resolve(tracer, element, "atomic_add", where);
  if (to.parameter->dtype != i32 || to.starts.size() != 1 || !to.shape.empty()) {
    Diagnostic(where, "atomic_add: " + to.parameter->name + " is not one element of an i32 vector")
        .token("atomic_add")
        .fix("declare it as inout(name, i32, {n}) and index it: counters(i)")
        .raise();
  }
  tracer.make_scheduled(where);
  return Index(tracer.handle(
      tracer.emit(Op::atomic_add,
                  {to.tensor, to.starts[0], tracer.use(value.index.handle(), "atomic_add", where)},
                  Type::scalar(i32), {}, where)));
}

namespace detail {

LoopDriver::LoopDriver(const Index& low, const Index& high, const Index& step, SourceLocation where)
    : tracer_(&Tracer::get("range", where)),
      low_(low.handle()),
      high_(high.handle()),
      step_(step.handle()),
      where_(where),
      exceptions_(std::uncaught_exceptions()) {
  const auto constant = tracer_->known(tracer_->use(step_, "range", where));
  if (constant && *constant <= 0) {
    Diagnostic(where, "range: the step is " + std::to_string(*constant))
        .token("range")
        .fix("a step is positive; for descending indices compute last - i in the body")
        .raise();
  }
}

void LoopDriver::begin() const {
  if (state_ == State::fresh) return;
  Diagnostic(where_, "range: a traced range is looped over twice")
      .token("range")
      .fix("write range(...) in each loop")
      .raise();
}

Index LoopDriver::open() {
  const auto use = [this](const Handle& handle) { return tracer_->use(handle, "range", where_); };
  state_ = State::open;
  return Index(tracer_->handle(tracer_->open_loop(use(low_), use(high_), use(step_), where_)));
}

void LoopDriver::close() {
  tracer_->close_loop();
  state_ = State::closed;
}

LoopDriver::~LoopDriver() noexcept(false) {
  if (state_ == State::closed || std::uncaught_exceptions() > exceptions_) return;
  // A compiler may forget to destroy the kernel that the broken body returns.
  if (state_ == State::open) tracer_->abandon();
  Diagnostic(where_, state_ == State::open ? "range: the body of a traced loop was left early"
                                           : "range: a traced range is not looped over")
      .token(state_ == State::open ? "for" : "range")
      .fix(
          "no break, return or goto out of a traced loop: its body is recorded once and runs many "
          "times; use when(condition, ...) inside it")
      .raise();
}

}  // namespace detail

namespace {

IndexRange index_range(const IndexOperand& low, const IndexOperand& high, const IndexOperand& step,
                       SourceLocation where) {
  return IndexRange(
      low.index, high.index, step.index, [](const Index& i) { return i; }, where);
}

}  // namespace

IndexRange range(const IndexOperand& high) {
  return index_range(IndexOperand(0, high.where), high, IndexOperand(1, high.where), high.where);
}
IndexRange range(const IndexOperand& low, const IndexOperand& high) {
  return index_range(low, high, IndexOperand(1, high.where), high.where);
}
IndexRange range(const IndexOperand& low, const IndexOperand& high, const IndexOperand& step) {
  return index_range(low, high, step, high.where);
}

namespace {

void check_block_size(int size, SourceLocation where) {
  if (size > 0) return;
  Diagnostic(where, "blocks: the size " + std::to_string(size) + " is not positive")
      .token("blocks")
      .fix("give the number of elements of a block")
      .raise();
}

}  // namespace

BlockRange blocks(const Sequence& rows, int size, SourceLocation where) {
  check_block_size(size, where);
  return blocks(rows, size, IndexOperand(0, where), IndexOperand(rows.blocks(size, where), where),
                where);
}

BlockRange blocks(const Sequence& rows, int size, const IndexOperand& low, const IndexOperand& high,
                  SourceLocation where) {
  check_block_size(size, where);
  return BlockRange(
      low.index, high.index, Index(1, where),
      [rows, size, where](const Index& i) { return rows.block(i, size, where); }, where);
}

void when(const Condition& condition, FunctionRef<void()> then, FunctionRef<void()> otherwise,
          SourceLocation where) {
  Tracer& tracer = Tracer::get("when", where);
  tracer.trace_if(tracer.use(condition.handle(), "when", where), then, otherwise, where);
}

void repeat_while(Cell<Condition>& condition, FunctionRef<void()> body, SourceLocation where) {
  Tracer::get("repeat_while", where).trace_while(condition.slot(), body, where);
}

Kernel::Kernel(std::string name, SourceLocation where)
    : tracer_(std::make_unique<Tracer>(std::move(name), where)) {}
Kernel::~Kernel() = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;

Tracer& Kernel::tracer(SourceLocation where) const {
  if (tracer_) return *tracer_;
  Diagnostic(where, "the kernel has been moved into another Kernel")
      .fix("use the Kernel that it was moved into")
      .raise();
}

void Kernel::require(std::initializer_list<Claim> claims) {
  for (const Claim& claim : claims) {
    tracer(claim.where).require_open("require", claim.where);
    if (claim.figure == Claim::Figure::instructions && claim.name != "convert") {
      const std::optional<Op> op = ir::find_op(claim.name);
      // An asynchronous product is a name for all that it is made into.
      if (!op ||
          !(ir::info(*op).in(ir::Form::machine) || ir::info(*op).is_asynchronous_product())) {
        Diagnostic(claim.where, "require: there is no instruction \"" + claim.name + "\"")
            .token(claim.name)
            .fix(
                "name one that `tilewright explain` counts, such as wgmma_rs, tma_load or "
                "mbarrier_wait")
            .raise();
      }
    }
    tracer(claim.where).kernel().claims.push_back(claim);
  }
}

void Kernel::schedule(const Schedule& stated, SourceLocation where) {
  Tracer& tracer = this->tracer(where);
  tracer.require_open("schedule", where);
  ir::check_ranges(stated);
  Schedule& mine = tracer.kernel().schedule;
  mine = ir::merged(stated, mine);
}

const std::string& Kernel::name() const { return tracer().kernel().name; }
const ir::Kernel& Kernel::finish() const { return tracer().finish(); }

Dim Kernel::dim(std::string name, DimFacts facts, SourceLocation where) {
  tracer(where).require_open("dim", where);
  return declare_dim(tracer(where).kernel().dims, std::move(name), facts, where);
}

namespace {

void check_parameter(Tracer& tracer, ir::Parameter::Kind kind, const std::string& name,
                     SourceLocation where) {
  tracer.require_open("parameter", where);
  check_name(name, "parameter", where);
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "parameter \"" + name + "\": " + problem).token(name).fix(fix).raise();
  };
  for (const ir::Parameter& other : tracer.kernel().parameters) {
    if (other.name == name) fail("the name is declared twice", "give each parameter its own name");
    ir::Parameter declared;
    declared.kind = kind;
    if (other.is_owned() && !declared.is_owned()) {
      fail("it is declared behind the " + std::string(ir::name_of(other.kind)) + " \"" +
               other.name + "\"",
           "declare workspaces, scratch memory and signals last");
    }
  }
}

}  // namespace

Scalar Kernel::scalar(std::string name, DType dtype, SourceLocation where) {
  check_parameter(tracer(where), ir::Parameter::Kind::scalar, name, where);
  if (dtype != f32 && dtype != i32) {
    Diagnostic(where, "scalar \"" + name + "\": of " + std::string(name_of(dtype)))
        .token(name)
        .fix("a scalar is f32 or i32")
        .raise();
  }
  ir::Kernel& kernel = tracer(where).kernel();
  ir::Parameter parameter;
  parameter.kind = ir::Parameter::Kind::scalar;
  parameter.name = std::move(name);
  parameter.dtype = dtype;
  parameter.where = where;
  parameter.value = kernel.add_value(Type::scalar(dtype));
  kernel.parameters.push_back(std::move(parameter));
  return Scalar(tracer(where).declare(kernel.parameters.back().value, where));
}

Tensor Kernel::parameter(int kind, std::string name, DType dtype, std::vector<Dim> shape,
                         SourceLocation where) {
  check_parameter(tracer(where), static_cast<ir::Parameter::Kind>(kind), name, where);
  ir::Kernel& kernel = tracer(where).kernel();
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "parameter \"" + name + "\": " + problem).token(name).fix(fix).raise();
  };
  if (dtype == DType::boolean) fail("bool has no place in memory", "use i32");
  if (shape.empty() || shape.size() > 5) {
    fail("a tensor has 1 to 5 axes, not " + std::to_string(shape.size()), "merge or add axes");
  }
  for (const Dim& extent : shape) {
    if (extent.is_constant() && extent.constant() < 0) {
      fail("the size " + extent.to_string() + " is negative", "sizes are zero or positive");
    }
    tracer(where).check_dim(extent, where);
  }
  ir::Parameter parameter;
  parameter.kind = static_cast<ir::Parameter::Kind>(kind);
  parameter.name = std::move(name);
  parameter.dtype = dtype;
  parameter.where = where;
  parameter.value = kernel.add_value(
      Type::of(Type::Kind::tensor, dtype, {static_cast<std::int64_t>(shape.size())}));
  parameter.shape = std::move(shape);
  kernel.parameters.push_back(std::move(parameter));
  return Tensor(tracer(where).declare(kernel.parameters.back().value, where));
}

Tensor Kernel::in(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where) {
  return parameter(static_cast<int>(ir::Parameter::Kind::in), std::move(name), dtype,
                   std::move(shape), where);
}
Tensor Kernel::out(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where) {
  return parameter(static_cast<int>(ir::Parameter::Kind::out), std::move(name), dtype,
                   std::move(shape), where);
}
Tensor Kernel::inout(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where) {
  return parameter(static_cast<int>(ir::Parameter::Kind::inout), std::move(name), dtype,
                   std::move(shape), where);
}

Tensor Kernel::workspace(std::string name, int count, SourceLocation where) {
  return parameter(static_cast<int>(ir::Parameter::Kind::workspace), std::move(name), i32, {count},
                   where);
}

Tensor Kernel::scratch(std::string name, int rows, int columns, SourceLocation where) {
  return parameter(static_cast<int>(ir::Parameter::Kind::scratch), std::move(name), f32,
                   {rows, columns}, where);
}

std::array<Index, 1> Kernel::grid(const GridExtent& x) {
  const std::vector<Handle> i = tracer(x.where).open_grid({x.dim}, x.where);
  return {Index(i[0])};
}
std::array<Index, 2> Kernel::grid(const GridExtent& x, const GridExtent& y) {
  const std::vector<Handle> i = tracer(x.where).open_grid({x.dim, y.dim}, x.where);
  return {Index(i[0]), Index(i[1])};
}
std::array<Index, 3> Kernel::grid(const GridExtent& x, const GridExtent& y, const GridExtent& z) {
  const std::vector<Handle> i = tracer(x.where).open_grid({x.dim, y.dim, z.dim}, x.where);
  return {Index(i[0]), Index(i[1]), Index(i[2])};
}

}  // namespace tilewright
