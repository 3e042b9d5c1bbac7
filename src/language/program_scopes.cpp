#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "language/names.h"
#include "language/program_recording.h"
#include "support/diagnostic.h"

// What a program does several times or not in each run, and what it reads for that.
namespace tilewright {

using ir::ProgramOperation;
using ir::ProgramRead;
using ir::ProgramScope;

namespace {

constexpr DimFacts kAnything{1, std::numeric_limits<std::int32_t>::min(),
                             std::numeric_limits<std::int32_t>::max()};

bool is_open(const ir::Program& program, int scope) {
  int open = program.recording;
  while (open != scope && open >= 0) open = program.scopes[open].parent;
  return open == scope;
}

bool is_taken(const ir::Program& program, const std::string& name) {
  const auto is_it = [&](const auto& each) { return each.name == name; };
  return std::any_of(program.reads.begin(), program.reads.end(), is_it) ||
         std::any_of(program.scopes.begin(), program.scopes.end(),
                     [&](const ProgramScope& each) { return each.turn == name; }) ||
         std::any_of(program.dims.begin(), program.dims.end(),
                     [&](const Dim& each) { return each.name() == name; });
}

// A name that is recorded again is another number: name_2.
std::string own_name(const ir::Program& program, const std::string& name, std::string_view verb,
                     SourceLocation where) {
  check_name(name, std::string(verb).c_str(), where);
  std::string own = name;
  for (int number = 2; is_taken(program, own) || own == ir::kMultiprocessors; ++number) {
    own = fmt::format("{}_{}", name, number);
  }
  return own;
}

void refuse_ranks(const ir::Program& program, std::string_view verb, SourceLocation where) {
  if (program.ranks == 1) return;
  Diagnostic(where, fmt::format("{}: program {} has {}", verb, program.name,
                                ir::ranks_text(program.ranks)))
      .token(verb)
      .fix("ranks would do different things: record them for one rank")
      .raise();
}

Compare inverse(Compare compare) {
  switch (compare) {
    case Compare::eq:
      return Compare::ne;
    case Compare::ne:
      return Compare::eq;
    case Compare::lt:
      return Compare::ge;
    case Compare::le:
      return Compare::gt;
    case Compare::gt:
      return Compare::le;
    case Compare::ge:
      break;
  }
  return Compare::lt;
}

// The body's operations stand in the scope.
void record_scope(ir::Program& program, ProgramScope scope, FunctionRef<void()> body) {
  struct Restored {
    int& recording;
    const int before;
    ~Restored() { recording = before; }
  };
  const Restored restored{program.recording, program.recording};
  scope.parent = program.recording;
  program.scopes.push_back(std::move(scope));
  program.recording = static_cast<int>(program.scopes.size()) - 1;
  body();
}

}  // namespace

bool is_of_open_scope(const ir::Program& program, const std::string& name) {
  for (const ProgramRead& each : program.reads) {
    if (each.name == name) return is_open(program, each.scope);
  }
  for (std::size_t i = 0; i < program.scopes.size(); ++i) {
    if (program.scopes[i].turn == name) return is_open(program, static_cast<int>(i));
  }
  return false;
}

void refuse_number_of_scope(const ir::Program& program, const std::string& name,
                            std::string_view verb, SourceLocation where, bool in_scopes) {
  const auto refuse = [&](SourceLocation made, const char* what) {
    Diagnostic diagnostic(where, fmt::format("{}: {} is {}", verb, name, what));
    diagnostic.token(verb).note(made, name + " is made");
    diagnostic
        .fix(in_scopes ? "use it in the body that made it, or make it outside"
                       : "a buffer's shape is one of dims: make it as large as any run needs")
        .raise();
  };
  for (const ProgramRead& each : program.reads) {
    if (each.name == name) refuse(each.where, "what a run reads elsewhere");
  }
  for (const ProgramScope& each : program.scopes) {
    if (each.turn == name) refuse(each.where, "the turn of another repeat");
  }
}

std::vector<ProgramOperation>::iterator begin_of_scopes(ir::Program& program) {
  if (program.recording < 0) return program.operations.end();
  const auto outermost = [&](int scope) {
    while (scope >= 0 && program.scopes[scope].parent >= 0) scope = program.scopes[scope].parent;
    return scope;
  };
  const int own = outermost(program.recording);
  return std::find_if(program.operations.begin(), program.operations.end(),
                      [&](const auto& each) { return outermost(each.scope) == own; });
}

void refuse_words_in_scope(const ir::Program& program, std::string_view verb,
                           SourceLocation where) {
  if (program.recording < 0) return;
  Diagnostic(where,
             fmt::format("{}: words count runs, and this is done more than once in a run, or "
                         "not in each",
                         verb))
      .token(verb)
      .note(program.scopes[program.recording].where, "it stands in a repeat, or a when")
      .fix("order streams by events there: record and wait")
      .raise();
}

void refuse_signals_in_scope(const ir::Program& program, const ProgramOperation& launch) {
  const ir::Kernel& kernel = *program.kernels[launch.kernel];
  if (program.recording < 0) return;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (parameter.kind != ir::Parameter::Kind::signals) continue;
    Diagnostic(launch.where,
               fmt::format("launch: the signals {} of {} count its launches, and this "
                           "is done more than once in a run, or not in each",
                           parameter.name, kernel.name))
        .token("launch")
        .note(program.scopes[program.recording].where, "it stands in a repeat, or a when")
        .fix("launch it outside")
        .raise();
  }
}

Dim Program::read(std::string name, const Buffer& buffer, const std::vector<Dim>& element,
                  SourceLocation where) {
  ir::Program& program = *program_;
  refuse_ranks(program, "read", where);
  const ir::ProgramPart part = resolve(program, buffer.program_, buffer.number_, -1, 0, element,
                                       std::vector<Dim>(element.size(), 1), "read", where);
  const ir::ProgramBuffer& read = program.buffers[part.buffer];
  const auto refuse = [&](const std::string& what, const char* fix) {
    Diagnostic(where, "read: " + what)
        .token("read")
        .note(read.where, read.name + " is made")
        .fix(fix)
        .raise();
  };
  if (read.kind != ir::ProgramBuffer::Kind::in) {
    refuse(read.name + " may be written by the run, whose numbers are read before it begins",
           "make it with Program::in");
  }
  if (is_float(read.dtype)) {
    refuse(
        fmt::format("{} is {}, and starts and counts are integers", read.name, name_of(read.dtype)),
        "a buffer of integers, such as i32");
  }
  check_dims(program, element, "read", where);
  if (ir::is_outside(element, part.sizes, read.shape)) {
    refuse(fmt::format("element {} is not inside of {} {}", ir::braced(element), read.name,
                       ir::braced(read.shape)),
           "one index for each axis, from 0 on and less than the axis");
  }
  name = own_name(program, name, "read", where);
  program.reads.push_back({name, part.buffer, element, program.recording, where});
  return Dim::symbol(std::move(name), kAnything);
}

void Program::repeat(std::string name, const Dim& count, FunctionRef<void(const Dim& turn)> body,
                     SourceLocation where) {
  ir::Program& program = *program_;
  refuse_ranks(program, "repeat", where);
  check_dims(program, {count}, "repeat", where);
  ProgramScope scope;
  scope.where = where;
  scope.turn = own_name(program, name, "repeat", where);
  scope.count = count;
  const Dim turn = Dim::symbol(scope.turn);
  record_scope(program, std::move(scope), [&] { body(turn); });
}

void Program::when(const Dim& left, Compare compare, const Dim& right, FunctionRef<void()> body,
                   FunctionRef<void()> otherwise, SourceLocation where) {
  ir::Program& program = *program_;
  refuse_ranks(program, "when", where);
  check_dims(program, {left, right}, "when", where);
  ProgramScope scope;
  scope.kind = ProgramScope::Kind::when;
  scope.where = where;
  scope.left = left;
  scope.right = right;
  scope.compare = compare;
  record_scope(program, scope, body);
  if (!otherwise) return;
  scope.compare = inverse(compare);
  record_scope(program, scope, otherwise);
}

}  // namespace tilewright
