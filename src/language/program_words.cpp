#include <fmt/format.h>

#include <algorithm>
#include <set>
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
  refuse_words_in_scope(program, ir::name_of(kind), where);
  check_number(program, value, ir::name_of(kind), where);
  ProgramOperation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.where = where;
  operation.to = std::move(word);
  operation.value = value;
  return operation;
}

// So many words of the meeting of that name; made where this rank is the first to come.
int meeting_words(ir::Program& program, const std::string& name, int count, SourceLocation where) {
  const auto found =
      std::find_if(program.buffers.begin(), program.buffers.end(), [&](const ProgramBuffer& each) {
        return each.is_meeting && each.name == name && each.shape.front() == count;
      });
  if (found != program.buffers.end()) return static_cast<int>(found - program.buffers.begin());
  const int made = add_buffer(program, ProgramBuffer::Kind::signals, name, i32, {count}, where);
  program.buffers[made].is_meeting = true;
  return made;
}

void refuse_second(const ir::Program& program, int words, int rank, const std::string& verb,
                   SourceLocation where) {
  for (const ProgramOperation& before : program.operations) {
    const bool is_own = program.streams[before.stream].rank == rank;
    const bool is_word =
        before.kind == ProgramOperation::Kind::write || before.kind == ProgramOperation::Kind::wait;
    if (!is_own || !is_word || before.to.buffer != words) continue;
    Diagnostic(where, fmt::format("{}: rank {} comes to the {} {} twice in a run", verb, rank, verb,
                                  program.buffers[words].name))
        .token(verb)
        .note(before.where, "it comes first")
        .fix(fmt::format("give each {} of a run a name of its own", verb))
        .raise();
  }
}

// Another rank of the program, of what an exchange names.
void check_other(const ir::Program& program, int own, int other, const std::string& what,
                 SourceLocation where) {
  if (other >= 0 && other < program.ranks && other != own) return;
  Diagnostic(where, fmt::format("exchange: rank {} {} rank {}", own, what, other))
      .token("exchange")
      .fix(fmt::format("another one of ranks 0 to {}: Buffer::on names it", program.ranks - 1))
      .raise();
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
  const int words = meeting_words(program, name, program.ranks, where);
  refuse_second(program, words, rank, "barrier", where);
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

// Every rank has a word for each other one that has come, and behind these one for each whose data
// has arrived.
void Stream::exchange(const std::string& name, const std::vector<Sent>& sent,
                      const std::vector<int>& from, SourceLocation where) const {
  ir::Program& program = *program_;
  const int rank = program.streams[number_].rank, ranks = program.ranks;
  std::set<int> receivers;
  for (const Sent& each : sent) {
    check_other(program, rank, each.to.rank_ < 0 ? rank : each.to.rank_, "sends to", where);
    if (each.from.rank_ >= 0 && each.from.rank_ != rank) {
      Diagnostic(where,
                 fmt::format("exchange: rank {} sends what rank {} has", rank, each.from.rank_))
          .token("exchange")
          .fix("a part of its own: let that rank send it")
          .raise();
    }
    receivers.insert(each.to.rank_);
  }
  const std::set<int> senders(from.begin(), from.end());
  for (const int sender : senders) check_other(program, rank, sender, "gets from", where);
  const int words = meeting_words(program, name, 2 * ranks, where);
  refuse_second(program, words, rank, "exchange", where);
  const std::size_t first = program.operations.size();
  const auto add = [&](ProgramOperation::Kind kind, int of_rank, int number) {
    record_operation(program,
                     word_operation(program, number_, kind, {words, of_rank, {number}, {1}},
                                    RunNumber(0, 1), where));
  };
  for (const int sender : senders) add(ProgramOperation::Kind::write, sender, rank);
  for (const int receiver : receivers) {
    add(ProgramOperation::Kind::wait, rank, receiver);
    for (const Sent& each : sent) {
      if (each.to.rank_ == receiver) copy(each.to, each.from, where);
    }
    add(ProgramOperation::Kind::write, receiver, ranks + rank);
  }
  for (const int sender : senders) add(ProgramOperation::Kind::wait, rank, ranks + sender);
  for (std::size_t i = first; i < program.operations.size(); ++i) {
    ProgramOperation& made = program.operations[i];
    if (made.kind != ProgramOperation::Kind::zero) made.exchange = words;
  }
}

}  // namespace tilewright
