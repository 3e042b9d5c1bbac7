#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "language/program_recording.h"
#include "support/diagnostic.h"

// What streams do at words.
namespace tilewright {

using ir::ProgramBuffer;
using ir::ProgramOperation;
using ir::ProgramPart;

namespace {

ProgramOperation word_operation(const ir::Program& program, int stream, ProgramOperation::Kind kind,
                                ProgramPart word, const RunNumber& value, SourceLocation where) {
  check_number(program, value, ir::name_of(kind), where);
  ProgramOperation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.where = where;
  operation.to = std::move(word);
  operation.value = value;
  return operation;
}

// The words of the barrier of that name, one for each rank; made where it is the first to come.
int barrier_words(ir::Program& program, const std::string& name, SourceLocation where) {
  const auto found =
      std::find_if(program.buffers.begin(), program.buffers.end(),
                   [&](const ProgramBuffer& each) { return each.is_barrier && each.name == name; });
  if (found != program.buffers.end()) return static_cast<int>(found - program.buffers.begin());
  const int made =
      add_buffer(program, ProgramBuffer::Kind::signals, name, i32, {program.ranks}, where);
  program.buffers[made].is_barrier = true;
  return made;
}

void refuse_second(const ir::Program& program, int words, int rank, SourceLocation where) {
  for (const ProgramOperation& before : program.operations) {
    const bool is_own = program.streams[before.stream].rank == rank;
    if (!is_own || before.kind != ProgramOperation::Kind::write || before.to.buffer != words) {
      continue;
    }
    Diagnostic(where, fmt::format("barrier: rank {} comes to the barrier {} twice in a run", rank,
                                  program.buffers[words].name))
        .token("barrier")
        .note(before.where, "it comes first")
        .fix("give each barrier of a run a name of its own")
        .raise();
  }
}

}  // namespace

void Stream::write(const Part& word, const RunNumber& value, SourceLocation where) const {
  ir::Program& program = *program_;
  const int rank = program.streams[number_].rank;
  record_operation(program, word_operation(program, number_, ProgramOperation::Kind::write,
                                           resolve(program, word.program_, word.buffer_, word.rank_,
                                                   rank, word.starts_, word.sizes_, "write", where),
                                           value, where));
}

void Stream::wait(const Part& word, Compare compare, const RunNumber& value,
                  SourceLocation where) const {
  ir::Program& program = *program_;
  const int rank = program.streams[number_].rank;
  ProgramOperation wait = word_operation(program, number_, ProgramOperation::Kind::wait,
                                         resolve(program, word.program_, word.buffer_, word.rank_,
                                                 rank, word.starts_, word.sizes_, "wait", where),
                                         value, where);
  wait.compare = compare;
  record_operation(program, std::move(wait));
}

void Stream::wait(const Part& word, const RunNumber& value, SourceLocation where) const {
  wait(word, Compare::ge, value, where);
}

// Each rank writes the number of the run into its word in every other rank: never reset, so that a
// rank may be a run ahead.
void Stream::barrier(const std::string& name, SourceLocation where) const {
  ir::Program& program = *program_;
  const int rank = program.streams[number_].rank;
  if (program.ranks == 1) return;
  const int words = barrier_words(program, name, where);
  refuse_second(program, words, rank, where);
  const RunNumber run(0, 1);
  for (const auto kind : {ProgramOperation::Kind::write, ProgramOperation::Kind::wait}) {
    for (int d = 1; d < program.ranks; ++d) {
      const int peer = (rank + d) % program.ranks;
      const bool writes = kind == ProgramOperation::Kind::write;
      const ProgramPart word{words, writes ? peer : rank, {writes ? rank : peer}, {1}};
      record_operation(program, word_operation(program, number_, kind, word, run, where));
    }
  }
}

}  // namespace tilewright
