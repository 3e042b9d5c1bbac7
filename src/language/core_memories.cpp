#include "language/core_tracing.h"
#include "target/core.h"
#include "target/target.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

// Memories of a core, windows of them, and the sequencers that use them.

const target::Core& core_of(Tracer& tracer, const char* what, SourceLocation where) {
  const target::Target& target = target::target_of(tracer.kernel());
  if (target.core) return *target.core;
  std::string names;
  for (const target::Target* each : target::targets()) {
    if (each->core) names += (names.empty() ? "" : ", ") + each->name;
  }
  Diagnostic(where, std::string(what) + ": " + target.name + " has no memories of this kind")
      .token(what)
      .fix("call Kernel::target first, with one of: " + names)
      .raise();
}

void raise_core(const target::CoreProblem& problem, const char* what, SourceLocation where) {
  if (problem.none()) return;
  Diagnostic(where, std::string(what) + ": " + problem.problem)
      .token(what)
      .fix(problem.fix)
      .raise();
}

CoreMemory::CoreMemory(Kernel& kernel, std::string space, std::string name, DType dtype, int rows,
                       int columns, Stages stages, SourceLocation where)
    : rows_(rows), columns_(columns), stages_(stages.count) {
  Tracer& tracer = ExplicitTracing::scheduled(kernel, "CoreMemory", where);
  const target::Core& core = core_of(tracer, "CoreMemory", where);
  target::CoreProblem problem = target::check_memory(core, space, {rows, columns, dtype});
  if (problem.none() && stages.count <= 0) {
    problem = {std::to_string(stages.count) + " stages", "ask for one or more"};
  }
  if (!problem.none()) problem.problem = '"' + name + "\": " + problem.problem;
  raise_core(problem, "CoreMemory", where);
  for (const ir::Operation& o : tracer.kernel().body.body) {
    if (o.op != Op::memory || o.attributes.text(Key::name) != name) continue;
    Diagnostic(where, "CoreMemory: \"" + name + "\" is another memory's name")
        .token("CoreMemory")
        .note(o.where, '"' + name + "\" is declared")
        .fix("give each memory a name of its own")
        .raise();
  }
  memory_ = tracer.handle(
      tracer.place(Op::memory, {}, Type::of(Type::Kind::memory, dtype, {stages_, rows, columns}),
                   {{Key::name, std::move(name)},
                    {Key::stages, std::int64_t{stages_}},
                    {Key::space, std::move(space)}},
                   where));
}

CoreWindow CoreMemory::operator[](const IndexOperand& stage) const {
  return CoreTracing::whole(*this, stage.index.handle(), Index(0, stage.where).handle());
}
CoreMemory::operator CoreWindow() const { return (*this)[0]; }

CoreWindow CoreTracing::whole(const CoreMemory& memory, const Handle& stage, const Handle& zero) {
  CoreWindow window;
  window.memory_ = memory.memory_;
  window.stage_ = stage;
  window.row_ = window.column_ = zero;
  window.rows_ = memory.rows_;
  window.columns_ = memory.columns_;
  return window;
}

CoreWindow CoreTracing::part(const CoreWindow& from, const IndexOperand& row,
                             const IndexOperand& column, int rows, int columns,
                             SourceLocation where) {
  if (from.transposed_) return transposed(part(from.T(), column, row, columns, rows, where));
  Tracer& tracer = in_role("part", where);
  const auto check = [&](const IndexOperand& first, int count, int all, const char* of) {
    const auto known = tracer.known(tracer.use(first.index.handle(), "part", where));
    const bool inside = !known || (*known >= 0 && *known + count <= all);
    if (count > 0 && count <= all && inside) return;
    Diagnostic(where, "part: " + std::to_string(count) + " " + of + " from " +
                          (known ? std::to_string(*known) : "an index") + " on of " +
                          std::to_string(all))
        .token("part")
        .fix("take a part that lies inside")
        .raise();
  };
  check(row, rows, from.rows_, "rows");
  check(column, columns, from.columns_, "columns");
  CoreWindow window = from;
  const auto sum = [&](const Handle& first, const IndexOperand& more) {
    const auto a = tracer.known(tracer.use(first, "part", where));
    const auto b = tracer.known(tracer.use(more.index.handle(), "part", where));
    return (a && b ? Index(*a + *b, where) : Index(first) + more).handle();
  };
  window.row_ = sum(from.row_, row);
  window.column_ = sum(from.column_, column);
  window.rows_ = rows;
  window.columns_ = columns;
  return window;
}
CoreWindow CoreWindow::part(const IndexOperand& row, const IndexOperand& column, int rows,
                            int columns, SourceLocation where) const {
  return CoreTracing::part(*this, row, column, rows, columns, where);
}

CoreWindow CoreTracing::transposed(const CoreWindow& from) {
  CoreWindow window = from;
  window.transposed_ = !window.transposed_;
  return window;
}
CoreWindow CoreWindow::T() const { return CoreTracing::transposed(*this); }

ir::ValueId CoreTracing::emit(Tracer& tracer, const CoreWindow& window, const char* what,
                              SourceLocation where) {
  const ir::ValueId memory = tracer.use(window.memory_, what, where);
  const ir::ValueId stage = tracer.use(window.stage_, what, where);
  const ir::ValueId row = tracer.use(window.row_, what, where);
  const ir::ValueId column = tracer.use(window.column_, what, where);
  const Type whole = tracer.type(memory);
  const auto known_stage = tracer.known(stage);
  if (known_stage && (*known_stage < 0 || *known_stage >= whole.shape[0])) {
    Diagnostic(where, std::string(what) + ": stage " + std::to_string(*known_stage) + " of " +
                          std::to_string(whole.shape[0]))
        .token(what)
        .note(tracer.location(memory), "the memory is declared")
        .fix("stages count from 0")
        .raise();
  }
  const auto known_row = tracer.known(row), known_column = tracer.known(column);
  if (known_row && known_column) {
    const target::CoreOperand made = operand(tracer, window, what, where);
    raise_core(target::check_start(*made.space, {whole.shape[1], whole.shape[2], whole.dtype},
                                   *known_row, *known_column),
               what, where);
  }
  return tracer.emit(Op::window, {memory, stage, row, column},
                     Type::of(Type::Kind::window, whole.dtype, {window.rows_, window.columns_}),
                     {{Key::transposed, std::int64_t{window.transposed_}}}, where);
}

target::CoreOperand CoreTracing::operand(Tracer& tracer, const CoreWindow& window, const char* what,
                                         SourceLocation where) {
  const ir::ValueId memory = tracer.use(window.memory_, what, where);
  const std::string& space = tracer.place_operation(memory).attributes.text(Key::space);
  const target::CoreSpace* found = core_of(tracer, what, where).space(space);
  const std::string& own = tracer.role()->name;
  if (!found->sequencer.empty() && found->sequencer != own) {
    raise_core({space + " is a memory of the sequencer \"" + found->sequencer + "\"",
                "use it in that one's body: this is \"" + own + "\""},
               what, where);
  }
  return {found, {window.rows_, window.columns_, tracer.type(memory).dtype}, window.transposed_};
}

void trace_sequencers(Tracer& tracer, std::span<const RoleSpec> roles, SourceLocation where) {
  const target::Core& core = core_of(tracer, "roles", where);
  for (const RoleSpec& role : roles) {
    std::string names;
    std::int64_t first = 0, before = 0;
    for (const target::CoreSequencer& each : core.sequencers) {
      names += (names.empty() ? "" : ", ") + each.name;
      if (each.name == role.name) first = before;
      before += each.count;
    }
    const auto fail = [&](const std::string& problem, const std::string& fix) {
      Diagnostic(role.where, "sequencer \"" + role.name + "\": " + problem)
          .token('"' + role.name + '"')
          .fix(fix)
          .raise();
    };
    const target::CoreSequencer* found = core.sequencer(role.name);
    if (found == nullptr) {
      fail(tracer.kernel().target + " has none of that name", "its sequencers are " + names);
    }
    if (!role.body) fail("it has no body", "give what it issues: a function or a lambda");
    for (const RoleSpec* other = roles.data(); other != &role; ++other) {
      if (other->name == role.name) fail("it has two bodies", "give all of it in one");
    }
    tracer.trace_role({{Key::name, role.name},
                       {Key::first_warp, first},
                       {Key::warps, std::int64_t{found->count}}},
                      role.body, role.where);
  }
  tracer.kernel().threads = target::target_of(tracer.kernel()).limits.threads;
}

}  // namespace tilewright
