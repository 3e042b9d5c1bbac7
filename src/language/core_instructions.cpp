#include <memory>
#include <optional>
#include <utility>

#include "language/core_tracing.h"
#include "language/view.h"
#include "target/core.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

// What the units of a core do, and what orders them.

namespace {

// The part of a tensor, of one to three axes.
target::CoreOperand part_of(const ResolvedView& view, const target::CoreOperand& window,
                            const char* what, SourceLocation where) {
  std::size_t axes = 0;
  for (const std::int64_t size : view.sizes) axes += size != 0;
  if (axes == 0 || axes > ir::kBoxAxes) {
    Diagnostic(where, std::string(what) + ": the part of " + view.parameter->name + " has " +
                          std::to_string(axes) + " axes")
        .token(what)
        .note(view.parameter->where, view.parameter->name + " is declared")
        .fix("give an index on all but the rows, which may have two axes, and the columns")
        .raise();
  }
  const ir::Extent2 extent = ir::box_extent(view.sizes, window.seen());
  return {nullptr,
          {extent.rows, extent.columns, view.parameter->dtype},
          false,
          ir::box_matrices(view.sizes)};
}

void check_shapes(const target::CoreOperand& to, const target::CoreOperand& from,
                  SourceLocation where) {
  if (to.seen() == from.seen()) return;
  Diagnostic(where, "move: from " + ir::to_string(from.seen()) + " to " + ir::to_string(to.seen()))
      .token("move")
      .fix("both must agree; part() takes less of a window, and T() swaps its axes")
      .raise();
}

std::string own_sequencer(const Tracer& tracer) { return tracer.role()->name; }

// The unit that moves it.
std::string mover(Tracer& tracer, const target::CoreOperand& to, const target::CoreOperand& from,
                  SourceLocation where) {
  check_shapes(to, from, where);
  const target::CoreMove* found = nullptr;
  raise_core(
      target::find_move(core_of(tracer, "move", where), to, from, own_sequencer(tracer), "", found),
      "move", where);
  return found->unit;
}

std::vector<ir::ValueId> with_box(std::vector<ir::ValueId> operands, const ResolvedView& view) {
  operands.insert(operands.end(), view.starts.begin(), view.starts.end());
  operands.insert(operands.end(), view.limits.begin(), view.limits.end());
  return operands;
}

}  // namespace

void move(const CoreWindow& to, const TensorView& from, SourceLocation where) {
  Tracer& tracer = in_role("move", where);
  const target::CoreOperand there = CoreTracing::operand(tracer, to, "move", where);
  const ResolvedView view = resolve(tracer, from, "move", where);
  const std::string unit = mover(tracer, there, part_of(view, there, "move", where), where);
  const ir::ValueId window = CoreTracing::emit(tracer, to, "move", where);
  plain(tracer, Op::core_load, with_box({window, view.tensor}, view),
        {{Key::unit, unit}, {Key::sizes, view.sizes}}, where);
}

void move(const TensorView& to, const CoreWindow& from, SourceLocation where) {
  Tracer& tracer = in_role("move", where);
  const target::CoreOperand there = CoreTracing::operand(tracer, from, "move", where);
  const ResolvedView view = resolve(tracer, to, "move", where);
  if (view.parameter->kind == ir::Parameter::Kind::in) {
    Diagnostic(where, "move: " + view.parameter->name + " is an input")
        .token("move")
        .note(view.parameter->where, view.parameter->name + " is declared")
        .fix("declare it with Kernel::out or Kernel::inout")
        .raise();
  }
  const std::string unit = mover(tracer, part_of(view, there, "move", where), there, where);
  const ir::ValueId window = CoreTracing::emit(tracer, from, "move", where);
  plain(tracer, Op::core_store, with_box({view.tensor, window}, view),
        {{Key::unit, unit}, {Key::sizes, view.sizes}}, where);
}

void move(const CoreWindow& to, const CoreWindow& from, SourceLocation where) {
  Tracer& tracer = in_role("move", where);
  const std::string unit = mover(tracer, CoreTracing::operand(tracer, to, "move", where),
                                 CoreTracing::operand(tracer, from, "move", where), where);
  const ir::ValueId target = CoreTracing::emit(tracer, to, "move", where);
  const ir::ValueId source = CoreTracing::emit(tracer, from, "move", where);
  plain(tracer, Op::core_move, {target, source}, {{Key::unit, unit}}, where);
}

namespace {

void product(const CoreWindow& result, const CoreWindow& left, const CoreWindow& right,
             const Condition& accumulate, const IndexOperand* k, SourceLocation where) {
  Tracer& tracer = in_role("matmul", where);
  const target::CoreProduct* found = nullptr;
  raise_core(target::find_product(core_of(tracer, "matmul", where),
                                  CoreTracing::operand(tracer, result, "matmul", where),
                                  CoreTracing::operand(tracer, left, "matmul", where),
                                  CoreTracing::operand(tracer, right, "matmul", where),
                                  own_sequencer(tracer), found),
             "matmul", where);
  std::vector<ir::ValueId> operands{CoreTracing::emit(tracer, result, "matmul", where),
                                    CoreTracing::emit(tracer, left, "matmul", where),
                                    CoreTracing::emit(tracer, right, "matmul", where),
                                    tracer.use(accumulate.handle(), "matmul", where)};
  if (k != nullptr) operands.push_back(tracer.use(k->index.handle(), "matmul", where));
  plain(tracer, Op::core_matmul, std::move(operands), {{Key::unit, found->unit}}, where);
}

}  // namespace

void matmul(const CoreWindow& result, const CoreWindow& left, const CoreWindow& right,
            const Condition& accumulate, SourceLocation where) {
  product(result, left, right, accumulate, nullptr, where);
}
void matmul(const CoreWindow& result, const CoreWindow& left, const CoreWindow& right,
            const Condition& accumulate, const IndexOperand& k, SourceLocation where) {
  product(result, left, right, accumulate, &k, where);
}

namespace {

Op function_of(VectorFunction function) {
  switch (function) {
    case VectorFunction::add:
      return Op::add;
    case VectorFunction::subtract:
      return Op::sub;
    case VectorFunction::multiply:
      return Op::mul;
    case VectorFunction::divide:
      return Op::div;
    case VectorFunction::minimum:
      return Op::min;
    case VectorFunction::maximum:
      return Op::max;
    case VectorFunction::negate:
      return Op::neg;
    case VectorFunction::exp:
      return Op::exp;
    case VectorFunction::exp2:
      return Op::exp2;
    case VectorFunction::log:
      return Op::log;
    case VectorFunction::log2:
      return Op::log2;
    case VectorFunction::sqrt:
      return Op::sqrt;
    case VectorFunction::reciprocal:
      return Op::rcp;
    case VectorFunction::tanh:
      return Op::tanh;
    case VectorFunction::convert:
      return Op::cast;
    case VectorFunction::less:
      return Op::lt;
    case VectorFunction::less_equal:
      return Op::le;
    case VectorFunction::equal:
      return Op::eq;
    case VectorFunction::not_equal:
      return Op::ne;
    case VectorFunction::logical_and:
      return Op::logical_and;
    case VectorFunction::logical_or:
      return Op::logical_or;
    case VectorFunction::logical_not:
      return Op::logical_not;
    case VectorFunction::select:
      return Op::select;
  }
  return Op::add;
}

// `function`: of elements, if any.
// `unit`: the one that does it, if it is said.
std::string computer(Tracer& tracer, const CoreWindow& to, const std::vector<CoreWindow>& from,
                     std::string_view function, bool is_fill, const char* what,
                     SourceLocation where, std::string_view unit = "") {
  std::vector<target::CoreOperand> operands;
  operands.reserve(from.size());
  for (const CoreWindow& each : from) {
    operands.push_back(CoreTracing::operand(tracer, each, what, where));
  }
  const target::CoreFunctions* found = nullptr;
  raise_core(target::find_functions(core_of(tracer, what, where),
                                    CoreTracing::operand(tracer, to, what, where), operands,
                                    function, is_fill, own_sequencer(tracer), unit, found),
             what, where);
  return found->unit;
}

ir::Extent2 extent_of(const CoreWindow& window) {
  return {window.row_count(), window.column_count()};
}

}  // namespace

void vector(VectorFunction function, const CoreWindow& to, const std::vector<VectorOperand>& of,
            SourceLocation where) {
  Tracer& tracer = in_role("vector", where);
  std::vector<CoreWindow> windows;
  for (const VectorOperand& each : of) {
    if (const auto* window = std::get_if<CoreWindow>(&each.value)) windows.push_back(*window);
  }
  const Op op = function_of(function);
  const std::string unit = computer(tracer, to, windows, ir::info(op).name, false, "vector", where);
  if (static_cast<int>(of.size()) != ir::info(op).arity) {
    raise_core({std::string(ir::info(op).name) + " of " + std::to_string(of.size()) + " operands",
                "it takes " + std::to_string(ir::info(op).arity)},
               "vector", where);
  }
  ir::Extent2 widest{1, 1};
  const auto dtype_of = [&](const CoreWindow& window) {
    return CoreTracing::operand(tracer, window, "vector", where).lying.dtype;
  };
  const DType made = dtype_of(to);
  // Comparisons make bool of what they take, and select chooses by it.
  const bool compares = ir::info(op).is_comparison();
  DType dtype = made;
  if (compares && made != DType::boolean) {
    raise_core({"the result is of " + std::string(name_of(made)), "a comparison makes bool"},
               "vector", where);
  }
  if (compares && !windows.empty()) dtype = dtype_of(windows.front());
  if (op == Op::select && !std::holds_alternative<CoreWindow>(of.front().value)) {
    raise_core({"select by a number", "its first operand is a window of bool"}, "vector", where);
  }
  bool is_choice = op == Op::select;  // of the operand that comes next
  for (const CoreWindow& each : windows) {
    const ir::Extent2 extent = extent_of(each);
    const ir::Extent2 wanted = extent_of(to);
    const bool fits = (extent.rows == wanted.rows || extent.rows == 1) &&
                      (extent.columns == wanted.columns || extent.columns == 1);
    if (!fits) {
      raise_core(
          {"an operand is " + ir::to_string(extent) + ", the result " + ir::to_string(wanted),
           "axes agree, or an operand's has size 1"},
          "vector", where);
    }
    widest = {std::max(widest.rows, extent.rows), std::max(widest.columns, extent.columns)};
    const DType own = dtype_of(each);
    const DType expected = is_choice ? DType::boolean : dtype;
    is_choice = false;
    if (own != expected && op != Op::cast) {
      raise_core({"an operand is of " + std::string(name_of(own)) + ", and not of " +
                      std::string(name_of(expected)),
                  "take one dtype; VectorFunction::convert makes another"},
                 "vector", where);
    }
  }
  if (!windows.empty() && widest != extent_of(to)) {
    raise_core({"the operands make " + ir::to_string(widest) + ", the result is " +
                    ir::to_string(extent_of(to)),
                "axes agree, or an operand's has size 1"},
               "vector", where);
  }
  std::vector<ir::ValueId> operands{CoreTracing::emit(tracer, to, "vector", where)};
  for (const VectorOperand& each : of) {
    if (const auto* window = std::get_if<CoreWindow>(&each.value)) {
      operands.push_back(CoreTracing::emit(tracer, *window, "vector", where));
    } else {
      operands.push_back(tracer.number(std::get<double>(each.value), dtype, "vector", where));
    }
  }
  plain(tracer, Op::core_vector, std::move(operands), {{Key::unit, unit}, {Key::function, op}},
        where);
}

void reduce(Reduction how, const CoreWindow& to, const CoreWindow& from, int axis,
            SourceLocation where) {
  Tracer& tracer = in_role("reduce", where);
  const std::string unit = computer(tracer, to, {from}, "", false, "reduce", where);
  ir::Extent2 wanted = extent_of(from);
  if (axis == 0) wanted.rows = 1;
  if (axis == 1) wanted.columns = 1;
  if ((axis != 0 && axis != 1) || extent_of(to) != wanted) {
    raise_core({"along axis " + std::to_string(axis) + " of " + ir::to_string(extent_of(from)) +
                    " into " + ir::to_string(extent_of(to)),
                "axis 0 leaves a row, axis 1 a column"},
               "reduce", where);
  }
  const Op op = how == Reduction::add ? Op::add : how == Reduction::min ? Op::min : Op::max;
  const ir::ValueId target = CoreTracing::emit(tracer, to, "reduce", where);
  const ir::ValueId source = CoreTracing::emit(tracer, from, "reduce", where);
  plain(tracer, Op::core_reduce, {target, source},
        {{Key::unit, unit}, {Key::function, op}, {Key::axis, std::int64_t{axis}}}, where);
}

namespace {

void fill_by(std::string_view asked, const CoreWindow& to, double number, SourceLocation where) {
  Tracer& tracer = in_role("fill", where);
  const std::string unit = computer(tracer, to, {}, "", true, "fill", where, asked);
  const ir::ValueId target = CoreTracing::emit(tracer, to, "fill", where);
  plain(tracer, Op::core_fill,
        {target, tracer.number(number, tracer.type(target).dtype, "fill", where)},
        {{Key::unit, unit}}, where);
}

}  // namespace

void fill(const CoreWindow& to, double number, SourceLocation where) {
  fill_by("", to, number, where);
}
void fill(const CoreWindow& to, double number, const std::string& unit, SourceLocation where) {
  Tracer& tracer = in_role("fill", where);
  raise_core(target::check_unit(core_of(tracer, "fill", where), unit, own_sequencer(tracer)),
             "fill", where);
  fill_by(unit, to, number, where);
}

void iota(const CoreWindow& to, int axis, const IndexOperand& first, SourceLocation where) {
  Tracer& tracer = in_role("iota", where);
  const std::string unit = computer(tracer, to, {}, "", false, "iota", where);
  const ir::ValueId target = CoreTracing::emit(tracer, to, "iota", where);
  if ((axis != 0 && axis != 1) || tracer.type(target).dtype != i32) {
    raise_core({"along axis " + std::to_string(axis) + " of " + tracer.type(target).to_string(),
                "the axis is 0 or 1, and the elements i32"},
               "iota", where);
  }
  plain(tracer, Op::core_iota, {target, tracer.use(first.index.handle(), "iota", where)},
        {{Key::unit, unit}, {Key::axis, std::int64_t{axis}}}, where);
}

CoreEvent::CoreEvent(Kernel& kernel, std::string from, std::string to, int count,
                     SourceLocation where)
    : from_(std::move(from)), to_(std::move(to)), count_(count) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "CoreEvent", where);
  const target::Core& core = core_of(tracer, "CoreEvent", where);
  const target::CoreEventPair* found = core.event(from_, to_);
  if (found == nullptr) {
    raise_core(
        {"there is no event from " + from_ + " to " + to_, "there are " + core.events_text()},
        "CoreEvent", where);
  }
  first_ = tracer.next_event[{from_, to_}];
  tracer.next_event[{from_, to_}] += count;
  if (count <= 0) {
    raise_core({std::to_string(count) + " events from " + from_ + " to " + to_,
                "ask for one or more, an event for each stage"},
               "CoreEvent", where);
  }
  if (first_ + count > found->ids) {
    raise_core({std::to_string(first_ + count) + " events from " + from_ + " to " + to_,
                "there are " + std::to_string(found->ids) + " of them: take fewer stages, or use " +
                    "one again"},
               "CoreEvent", where);
  }
}

void CoreEvent::set(const IndexOperand& index) const { record(true, index); }
void CoreEvent::wait(const IndexOperand& index) const { record(false, index); }

void CoreEvent::record(bool is_set, const IndexOperand& index) const {
  const char* what = is_set ? "set" : "wait";
  Tracer& tracer = in_role(what, index.where);
  raise_core(target::check_event(core_of(tracer, what, index.where), from_, to_, is_set,
                                 own_sequencer(tracer)),
             what, index.where);
  const auto known = tracer.known(tracer.use(index.index.handle(), what, index.where));
  if (known && (*known < 0 || *known >= count_)) {
    raise_core({"event " + std::to_string(*known) + " of " + std::to_string(count_),
                "events count from 0 to " + std::to_string(count_ - 1)},
               what, index.where);
  }
  const Tracer::At at(tracer, index.where);
  const ir::ValueId number = first_ == 0
                                 ? tracer.use(index.index.handle(), what, index.where)
                                 : tracer.use((index.index + first_).handle(), what, index.where);
  plain(tracer, is_set ? Op::event_set : Op::event_wait, {number},
        {{Key::from, from_}, {Key::to, to_}}, index.where);
}

void unit_barrier(const std::string& unit, SourceLocation where) {
  Tracer& tracer = in_role("unit_barrier", where);
  raise_core(
      target::check_unit(core_of(tracer, "unit_barrier", where), unit, own_sequencer(tracer)),
      "unit_barrier", where);
  plain(tracer, Op::unit_barrier, {}, {{Key::unit, unit}}, where);
}

struct CoreRing::State {
  State(Kernel& kernel, const std::string& filled_by, const std::string& emptied_by, int stages,
        SourceLocation where)
      : full(kernel, filled_by, emptied_by, stages, where),
        free(kernel, emptied_by, filled_by, stages, where),
        stages(stages),
        where(where) {}
  CoreEvent full, free;
  const int stages;
  const SourceLocation where;
  std::string filling, emptying;                 // sequencers
  std::unique_ptr<Cell<Index>> filled, emptied;  // the next stage, in the role that is being traced

  // Sets all of the way back, or takes them back.
  void each_free(bool sets) const {
    for (int stage = 0; stage < stages; ++stage) {
      const IndexOperand index(stage, where);
      sets ? free.set(index) : free.wait(index);
    }
  }
  void begin(const std::string& sequencer) {
    if (sequencer == filling) filled = std::make_unique<Cell<Index>>(Index(0, where), where);
    if (sequencer != emptying) return;
    emptied = std::make_unique<Cell<Index>>(Index(0, where), where);
    each_free(true);
  }
  void end(const std::string& sequencer) {
    if (sequencer == filling) each_free(false);
    filled = nullptr;
    emptied = nullptr;
  }
  void turn(bool fills, FunctionRef<void(const Index& stage)> body, SourceLocation from) {
    const char* what = fills ? "produce" : "consume";
    Tracer& tracer = in_role(what, from);
    const std::unique_ptr<Cell<Index>>& next = fills ? filled : emptied;
    if (!next) {
      raise_core({"the ring is " + std::string(fills ? "filled" : "emptied") +
                      " by a unit of the sequencer \"" + (fills ? filling : emptying) + "\"",
                  "call it in that one's body"},
                 what, from);
    }
    std::optional<Index> stage;
    {
      const Tracer::At at(tracer, from);
      stage.emplace(*next);
      (fills ? free : full).wait(IndexOperand(*stage, from));
    }
    body(*stage);  // whose lines are its own
    const Tracer::At at(tracer, from);
    (fills ? full : free).set(IndexOperand(*stage, from));
    *next = (*stage + 1) % stages;
  }
};

CoreRing::CoreRing(Kernel& kernel, std::string filled_by, std::string emptied_by, Stages stages,
                   SourceLocation where)
    : state_(std::make_shared<State>(kernel, filled_by, emptied_by, stages.count, where)) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "CoreRing", where);
  const target::Core& core = core_of(tracer, "CoreRing", where);
  state_->filling = core.unit(filled_by)->sequencer;
  state_->emptying = core.unit(emptied_by)->sequencer;
  tracer.on_role.push_back([&tracer, state = std::weak_ptr<State>(state_)](bool begin) {
    const auto ring = state.lock();
    if (!ring) return;
    begin ? ring->begin(tracer.role()->name) : ring->end(tracer.role()->name);
  });
}

CoreRing::~CoreRing() = default;

void CoreRing::produce(FunctionRef<void(const Index& stage)> body, SourceLocation where) {
  state_->turn(true, body, where);
}
void CoreRing::consume(FunctionRef<void(const Index& stage)> body, SourceLocation where) {
  state_->turn(false, body, where);
}

}  // namespace tilewright
