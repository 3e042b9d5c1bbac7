#include "tilewright/ranks.h"

#include "ir/memory_order.h"
#include "language/explicit_tracing.h"
#include "language/view.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

Handle peer(const Handle& handle, const IndexOperand& rank) {
  Tracer& tracer = Tracer::get("at", rank.where);
  const ir::Kernel& kernel = tracer.kernel();
  const ir::ValueId tensor = tracer.use(handle, "at", rank.where);
  const ir::Parameter& parameter = *kernel.parameter_of(tensor);
  if (!parameter.is_symmetric()) {
    Diagnostic(rank.where, "at: " + parameter.name + " is in this rank alone")
        .token("at")
        .note(parameter.where, parameter.name + " is declared")
        .fix("declare it with Kernel::symmetric, so that every rank has it")
        .raise();
  }
  const ir::ValueId number = tracer.use(rank.index.handle(), "at", rank.where);
  if (const auto known = tracer.known(number);
      known && (*known < 0 || *known >= ir::kMaximumRanks)) {
    Diagnostic(rank.where, "at: rank " + std::to_string(*known) + " of " + parameter.name)
        .token("at")
        .fix("ranks count from 0, and there are at most " + std::to_string(ir::kMaximumRanks))
        .raise();
  }
  const auto of = static_cast<std::int64_t>(&parameter - kernel.parameters.data());
  const Type type = Type::of(Type::Kind::tensor, parameter.dtype,
                             {static_cast<std::int64_t>(parameter.shape.size()), of});
  const ir::ValueId made = tracer.emit(Op::peer, {tensor, number}, type, {}, rank.where);
  tracer.rank_of_peer[made] = number;
  return tracer.handle(made);
}

void check_order(Op op, const char* what, MemoryOrder order, SourceLocation where) {
  const std::string problem = ir::order_problem(op, order.semantics);
  if (problem.empty()) return;
  Diagnostic(where, std::string(what) + ": " + problem)
      .token(what)
      .fix("take one that PTX has")
      .raise();
}

// A store to a word that others wait for.
void check_signal(const char* what, MemoryOrder order, SourceLocation where) {
  if (order.semantics == Semantics::relaxed || order.semantics == Semantics::release) return;
  Diagnostic(where, std::string(what) + ": it is " + std::string(ir::name_of(order.semantics)) +
                        ", expected relaxed or release")
      .token(what)
      .fix("leave the order out: release, for all ranks")
      .raise();
}

// The operands of a word of signals and a value.
std::vector<ir::ValueId> word(Tracer& tracer, const Signals& signals, const IndexOperand& index,
                              const IndexOperand& value, const char* what, SourceLocation where) {
  const ir::ValueId tensor = tracer.use(signals.handle(), what, where);
  const ir::ValueId element = tracer.use(index.index.handle(), what, where);
  const ir::Parameter& parameter = *tracer.kernel().parameter_of(tensor);
  const std::int64_t count = parameter.shape[0].constant();
  if (const auto known = tracer.known(element); known && (*known < 0 || *known >= count)) {
    Diagnostic(where, std::string(what) + ": word " + std::to_string(*known) + " of the " +
                          std::to_string(count) + " of " + parameter.name)
        .token(what)
        .note(parameter.where, parameter.name + " is declared")
        .fix("words count from 0 to " + std::to_string(count - 1))
        .raise();
  }
  return {tensor, element, tracer.use(value.index.handle(), what, where)};
}

ir::Attributes ordered(MemoryOrder order) {
  ir::Attributes attributes;
  ir::set_order(attributes, order);
  return attributes;
}

// The element of a tensor that others access meanwhile.
ResolvedView element_of(Tracer& tracer, const TensorView& view, bool writes, const char* what,
                        SourceLocation where) {
  ResolvedView element = resolve(tracer, view, what, where);
  const ir::Parameter& parameter = *element.parameter;
  if (parameter.dtype != i32 || element.starts.size() != 1 || !element.shape.empty()) {
    Diagnostic(where,
               std::string(what) + ": " + parameter.name + " is not one element of an i32 vector")
        .token(what)
        .note(parameter.where, parameter.name + " is declared")
        .fix("declare it as inout(name, i32, {n}) or symmetric, and index it: counters(i)")
        .raise();
  }
  if (parameter.kind == ir::Parameter::Kind::in) {
    Diagnostic(where, std::string(what) + ": " + parameter.name + " is an input, which " +
                          (writes ? "nobody writes" : "nobody writes meanwhile"))
        .token(what)
        .note(parameter.where, parameter.name + " is declared")
        .fix(writes ? "declare it with Kernel::inout or Kernel::symmetric"
                    : "leave the order out, or declare it with Kernel::inout or Kernel::symmetric")
        .raise();
  }
  return element;
}

// Until the word, the second operand of a tensor, compares so to the third.
void wait_for(Tracer& tracer, std::vector<ir::ValueId> word, Compare compare, MemoryOrder order,
              SourceLocation where) {
  check_order(Op::wait_flag, "wait_flag", order, where);
  ir::Attributes attributes = ordered(order);
  attributes.set(Key::compare, std::string(ir::name_of(compare)));
  plain(tracer, Op::wait_flag, std::move(word), std::move(attributes), where);
}

}  // namespace

Tensor Tensor::at(const IndexOperand& rank) const { return Tensor(peer(handle_, rank)); }
Signals Signals::at(const IndexOperand& rank) const { return Signals(peer(handle_, rank)); }

Tensor Kernel::symmetric(std::string name, DType dtype, std::vector<Dim> shape,
                         SourceLocation where) {
  return parameter(static_cast<int>(ir::Parameter::Kind::symmetric), std::move(name), dtype,
                   std::move(shape), where);
}

Signals Kernel::signals(std::string name, int count, SourceLocation where) {
  if (count <= 0) {
    Diagnostic(where, "signals \"" + name + "\": " + std::to_string(count) + " words")
        .token(name)
        .fix("ask for one or more")
        .raise();
  }
  return Signals(parameter(static_cast<int>(ir::Parameter::Kind::signals), std::move(name), i32,
                           {count}, where)
                     .handle());
}

Index Kernel::rank(SourceLocation where) {
  tracer(where).require_open("rank", where);
  return Index(
      tracer(where).handle(tracer(where).emit(Op::rank, {}, Type::scalar(i32), {}, where)));
}

Index Kernel::epoch(SourceLocation where) {
  tracer(where).require_open("epoch", where);
  return Index(
      tracer(where).handle(tracer(where).emit(Op::epoch, {}, Type::scalar(i32), {}, where)));
}

Dim Kernel::ranks(SourceLocation where) {
  for (const Dim& known : tracer(where).kernel().dims) {
    if (known.name() == ir::kRanks) return known;
  }
  tracer(where).require_open("ranks", where);
  tracer(where).kernel().dims.push_back(Dim::symbol(ir::kRanks, {1, 1, ir::kMaximumRanks}));
  return tracer(where).kernel().dims.back();
}

void signal(const Signals& to, const IndexOperand& index, const IndexOperand& value,
            MemoryOrder order, SourceLocation where) {
  Tracer& tracer = in_role("signal", where);
  check_signal("signal", order, where);
  plain(tracer, Op::store_index, word(tracer, to, index, value, "signal", where), ordered(order),
        where);
}

void signal_add(const Signals& to, const IndexOperand& index, const IndexOperand& value,
                MemoryOrder order, SourceLocation where) {
  Tracer& tracer = in_role("signal_add", where);
  check_signal("signal_add", order, where);
  plain(tracer, Op::reduce_add, word(tracer, to, index, value, "signal_add", where), ordered(order),
        where);
}

void wait_flag(const Signals& flags, const IndexOperand& index, Compare compare,
               const IndexOperand& value, MemoryOrder order, SourceLocation where) {
  Tracer& tracer = in_role("wait_flag", where);
  wait_for(tracer, word(tracer, flags, index, value, "wait_flag", where), compare, order, where);
}

void wait_flag(const TensorView& element, Compare compare, const IndexOperand& value,
               MemoryOrder order, SourceLocation where) {
  Tracer& tracer = in_role("wait_flag", where);
  const ResolvedView from = element_of(tracer, element, /*writes=*/false, "wait_flag", where);
  wait_for(tracer,
           {from.tensor, from.starts[0], tracer.use(value.index.handle(), "wait_flag", where)},
           compare, order, where);
}

Index load_index(const TensorView& element, MemoryOrder order, SourceLocation where) {
  Tracer& tracer = in_role("load_index", where);
  check_order(Op::load_index, "load_index", order, where);
  const ResolvedView from = element_of(tracer, element, /*writes=*/false, "load_index", where);
  return Index(tracer.handle(tracer.emit(Op::load_index, {from.tensor, from.starts[0]},
                                         Type::scalar(i32), ordered(order), where)));
}

void store_index(const TensorView& element, const IndexOperand& value, MemoryOrder order,
                 SourceLocation where) {
  Tracer& tracer = in_role("store_index", where);
  check_order(Op::store_index, "store_index", order, where);
  const ResolvedView to = element_of(tracer, element, /*writes=*/true, "store_index", where);
  plain(tracer, Op::store_index,
        {to.tensor, to.starts[0], tracer.use(value.index.handle(), "store_index", where)},
        ordered(order), where);
}

Index atomic_add(const TensorView& element, const IndexOperand& value, MemoryOrder order,
                 SourceLocation where) {
  Tracer& tracer = in_role("atomic_add", where);
  check_order(Op::atomic_add, "atomic_add", order, where);
  const ResolvedView to = element_of(tracer, element, /*writes=*/true, "atomic_add", where);
  return Index(tracer.handle(
      tracer.emit(Op::atomic_add,
                  {to.tensor, to.starts[0], tracer.use(value.index.handle(), "atomic_add", where)},
                  Type::scalar(i32), ordered(order), where)));
}

void fence(Scope scope, SourceLocation where) {
  plain(in_role("fence", where), Op::fence, {}, {{Key::scope, std::string(ir::name_of(scope))}},
        where);
}

void fence_proxy_async_global(SourceLocation where) {
  plain(in_role("fence_proxy_async_global", where), Op::fence_proxy_async_global, {}, {}, where);
}

}  // namespace tilewright
