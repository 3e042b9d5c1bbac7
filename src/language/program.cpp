#include "tilewright/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/binding.h"
#include "ir/program.h"
#include "ir/text.h"
#include "language/names.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using ir::ProgramBuffer;
using ir::ProgramOperation;
using ir::ProgramPart;

std::string braced(const std::vector<std::int64_t>& shape) {
  return fmt::format("{{{}}}", fmt::join(shape, ", "));
}

// The part of rank `own` where it names none.
ProgramPart resolve(const ir::Program& program, const std::shared_ptr<ir::Program>& of, int buffer,
                    int rank, int own, const std::vector<std::int64_t>& starts,
                    const std::vector<std::int64_t>& sizes, std::string_view verb,
                    SourceLocation where) {
  if (!of) {
    Diagnostic(where, fmt::format("{}: a buffer that no program has made", verb))
        .token(verb)
        .fix("make it with Program::buffer or Program::signals")
        .raise();
  }
  if (of.get() != &program) {
    const ProgramBuffer& foreign = of->buffers[buffer];
    Diagnostic(where, fmt::format("{}: buffer {} is of program {}, not of {}", verb, foreign.name,
                                  of->name, program.name))
        .token(verb)
        .note(foreign.where, foreign.name + " is made")
        .fix("use the buffers of the program that is recorded")
        .raise();
  }
  return {buffer, rank < 0 ? own : rank, starts, sizes};
}

// One i32 word of a signals buffer.
void check_word(const ir::Program& program, const ProgramPart& word, std::string_view verb,
                SourceLocation where) {
  const ProgramBuffer& buffer = program.buffers[word.buffer];
  if (buffer.kind == ProgramBuffer::Kind::signals && word.sizes == std::vector<std::int64_t>{1}) {
    return;
  }
  Diagnostic(where, fmt::format("{}: {} {} is not one word of signals", verb, buffer.name,
                                braced(word.sizes)))
      .token(verb)
      .note(buffer.where, buffer.name + " is made")
      .fix("a word of what Program::signals makes: ready[0]")
      .raise();
}

// Words hold integers; one that counts in halves would be rounded in every other run.
void check_word_value(const RunNumber& value, std::string_view verb, SourceLocation where) {
  constexpr double kLimit = 0x1p31;
  const auto fits = [](double number) {
    return number >= -kLimit && number < 2 * kLimit && number == std::floor(number);
  };
  if (fits(value.base) && fits(value.per_run)) return;
  Diagnostic(where, fmt::format("{}: {} + {} * run is no integer of 32 bits", verb, value.base,
                                value.per_run))
      .token(verb)
      .fix("words are i32: take whole numbers")
      .raise();
}

bool overlap(const ProgramPart& a, const ProgramPart& b) {
  if (a.buffer != b.buffer || a.rank != b.rank) return false;
  for (std::size_t axis = 0; axis < a.starts.size(); ++axis) {
    const std::int64_t first = std::max(a.starts[axis], b.starts[axis]);
    const std::int64_t end =
        std::min(a.starts[axis] + a.sizes[axis], b.starts[axis] + b.sizes[axis]);
    if (first >= end) return false;
  }
  return true;
}

int find_kernel(ir::Program& program, const ir::Kernel& kernel) {
  // By its text: each rank may trace the kernel anew.
  std::string text = ir::to_text(kernel, {/*locations=*/false});
  const auto same = std::find(program.kernel_texts.begin(), program.kernel_texts.end(), text);
  if (same != program.kernel_texts.end()) {
    return static_cast<int>(same - program.kernel_texts.begin());
  }
  program.kernels.push_back(std::make_shared<const ir::Kernel>(kernel));
  program.kernel_texts.push_back(std::move(text));
  return static_cast<int>(program.kernels.size()) - 1;
}

// How parameters that no caller passes are named: no two kernels share one, also where they have
// the same name.
std::string owned_prefix(const ir::Program& program, int kernel) {
  const std::string& name = program.kernels[kernel]->name;
  const auto first = program.kernels.begin();
  const auto earlier =
      std::count_if(first, first + kernel, [&](const auto& each) { return each->name == name; });
  return earlier == 0 ? name : fmt::format("{}#{}", name, earlier + 1);
}

// Memory that no caller passes: found again by its name.
ProgramPart owned(ir::Program& program, const ir::Parameter& parameter, const std::string& name,
                  int rank) {
  const std::vector<std::int64_t> shape = parameter.constant_shape();
  auto place = std::find_if(program.buffers.begin(), program.buffers.end(),
                            [&](const ProgramBuffer& each) { return each.name == name; });
  if (place == program.buffers.end()) {
    program.buffers.push_back(
        {owned_kind(parameter), name, parameter.dtype, shape, parameter.where});
    place = program.buffers.end() - 1;
  }
  return {static_cast<int>(place - program.buffers.begin()), rank,
          std::vector<std::int64_t>(shape.size(), 0), shape};
}

// Adds what no caller passes to the tensors that are given, among which signals may be.
void complete(ir::Program& program, const ir::Kernel& kernel, ProgramOperation& launch) {
  const ir::ProgramStream& stream = program.streams[launch.stream];
  std::vector<ProgramPart> given = std::exchange(launch.tensors, {});
  const auto passed = static_cast<std::size_t>(
      std::count_if(kernel.parameters.begin(), kernel.parameters.end(),
                    [](const auto& each) { return each.is_tensor() && !each.is_owned(); }));
  const bool has_signals = given.size() > passed;
  std::size_t next = std::min(passed, given.size());
  launch.tensors.assign(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(next));
  if (launch.tensors.size() < passed) return;  // which binding tells
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_owned()) continue;
    if (has_signals && !parameter.is_of_stream()) {
      if (next == given.size()) return;
      launch.tensors.push_back(given[next++]);
      continue;
    }
    std::string name = fmt::format("{}.{}", owned_prefix(program, launch.kernel), parameter.name);
    if (parameter.is_of_stream()) name += " of " + name_of(program, stream);
    launch.tensors.push_back(owned(program, parameter, name, stream.rank));
  }
  launch.tensors.insert(launch.tensors.end(), given.begin() + static_cast<std::ptrdiff_t>(next),
                        given.end());
}

// The words by which launches count their epochs: those of the kernel's first signals.
std::optional<int> epoch_words(const ir::Program& program, const ProgramOperation& launch) {
  for (const ProgramPart& part : launch.tensors) {
    if (program.buffers[part.buffer].kind == ProgramBuffer::Kind::signals) return part.buffer;
  }
  return std::nullopt;
}

void count_epoch(ir::Program& program, ProgramOperation& launch) {
  const std::optional<int> words = epoch_words(program, launch);
  const int rank = program.streams[launch.stream].rank;
  std::vector<ProgramOperation*> alike{&launch};
  for (ProgramOperation& other : program.operations) {
    if (other.kind == ProgramOperation::Kind::launch &&
        program.streams[other.stream].rank == rank && other.kernel == launch.kernel &&
        epoch_words(program, other) == words) {
      alike.push_back(&other);
    }
  }
  launch.epoch = static_cast<std::int64_t>(alike.size());
  for (ProgramOperation* each : alike) each->epochs_per_run = launch.epoch;
}

void check_operands(const ir::Program& program, const ProgramOperation& launch) {
  try {
    ir::check_launch(program, launch);
  } catch (const Error& error) {
    Diagnostic(launch.where, "launch: " + error.message())
        .token("launch")
        .note(error.location(), "the kernel says so")
        .raise();
  }
}

}  // namespace

RunNumber operator+(RunNumber a, RunNumber b) { return {a.base + b.base, a.per_run + b.per_run}; }
RunNumber operator-(RunNumber a, RunNumber b) { return {a.base - b.base, a.per_run - b.per_run}; }
RunNumber operator*(RunNumber a, double factor) { return {a.base * factor, a.per_run * factor}; }
RunNumber operator*(double factor, RunNumber a) { return a * factor; }

Part Part::narrowed(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& sizes,
                    std::string_view verb, SourceLocation where) const {
  if (!program_) return *this;  // an error where it is used
  const auto fits = [&] {
    if (starts.size() != sizes_.size() || sizes.size() != sizes_.size()) return false;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const bool inside =
          starts[axis] >= 0 && sizes[axis] >= 0 && starts[axis] <= sizes_[axis] - sizes[axis];
      if (!inside) return false;
    }
    return true;
  };
  if (!fits()) {
    const ProgramBuffer& buffer = program_->buffers[buffer_];
    Diagnostic(where, fmt::format("{} elements from {} on are not inside of {} {}", braced(sizes),
                                  braced(starts), buffer.name, braced(sizes_)))
        .token(verb)
        .note(buffer.where, buffer.name + " is made")
        .raise();
  }
  Part part = *this;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) part.starts_[axis] += starts[axis];
  part.sizes_ = sizes;
  return part;
}

Part Part::box(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& sizes,
               SourceLocation where) const {
  return narrowed(starts, sizes, "box", where);
}

Part Part::rows(std::int64_t first, std::int64_t count, SourceLocation where) const {
  std::vector<std::int64_t> starts(sizes_.size(), 0), sizes = sizes_;
  // A part without axes has no rows: as many axes as are given do not fit it.
  starts.resize(std::max<std::size_t>(starts.size(), 1));
  sizes.resize(starts.size());
  starts[0] = first;
  sizes[0] = count;
  return narrowed(starts, sizes, "rows", where);
}

Part Part::operator[](const ElementNumber& element) const {
  return narrowed({element.number}, {1}, "[", element.where);
}

Buffer::operator Part() const {
  Part part;
  part.program_ = program_;
  part.buffer_ = number_;
  if (!program_) return part;
  part.sizes_ = program_->buffers[number_].shape;
  part.starts_.assign(part.sizes_.size(), 0);
  return part;
}

Part Buffer::on(int rank, SourceLocation where) const {
  Part part = *this;
  if (program_ && (rank < 0 || rank >= program_->ranks)) {
    Diagnostic(where, fmt::format("{} of rank {}: program {} has ranks 0 to {}",
                                  program_->buffers[number_].name, rank, program_->name,
                                  program_->ranks - 1))
        .token("on")
        .raise();
  }
  part.rank_ = rank;
  return part;
}

Part Buffer::rows(std::int64_t first, std::int64_t count, SourceLocation where) const {
  return Part(*this).rows(first, count, where);
}

Part Buffer::operator[](const ElementNumber& element) const { return Part(*this)[element]; }

void Stream::launch(const Kernel& traced, const std::vector<Part>& tensors,
                    const std::vector<RunNumber>& scalars, SourceLocation where) const {
  ir::Program& program = *program_;
  const int rank = program.streams[number_].rank;
  const ir::Kernel& kernel = traced.finish();
  ProgramOperation launch;
  launch.kind = ProgramOperation::Kind::launch;
  launch.stream = number_;
  launch.where = where;
  launch.kernel = find_kernel(program, kernel);
  launch.scalars = scalars;
  for (const Part& part : tensors) {
    launch.tensors.push_back(resolve(program, part.program_, part.buffer_, part.rank_, rank,
                                     part.starts_, part.sizes_, "launch", where));
    if (launch.tensors.back().rank == rank) continue;
    Diagnostic(where, fmt::format("launch: {} is given to a launch on rank {}: a kernel gets the "
                                  "tensors of its own rank",
                                  name_of(program, part.buffer_, part.rank_), rank))
        .token("launch")
        .fix("declare it as Kernel::symmetric and reach the peer's by at(rank)")
        .raise();
  }
  complete(program, kernel, launch);
  check_operands(program, launch);
  count_epoch(program, launch);
  program.operations.push_back(std::move(launch));
}

void Stream::copy(const Part& to, const Part& from, SourceLocation where) const {
  ir::Program& program = *program_;
  const int rank = program.streams[number_].rank;
  ProgramOperation copy;
  copy.kind = ProgramOperation::Kind::copy;
  copy.stream = number_;
  copy.where = where;
  copy.to = resolve(program, to.program_, to.buffer_, to.rank_, rank, to.starts_, to.sizes_, "copy",
                    where);
  copy.from = resolve(program, from.program_, from.buffer_, from.rank_, rank, from.starts_,
                      from.sizes_, "copy", where);
  const ProgramBuffer &target = program.buffers[to.buffer_],
                      &source = program.buffers[from.buffer_];
  if (to.sizes_ != from.sizes_ || target.dtype != source.dtype) {
    Diagnostic(where, fmt::format("copy: {} {} {} from {} {} {}", target.name,
                                  name_of(target.dtype), braced(to.sizes_), source.name,
                                  name_of(source.dtype), braced(from.sizes_)))
        .token("copy")
        .note(target.where, target.name + " is made")
        .note(source.where, source.name + " is made")
        .fix("parts of the same shape and dtype")
        .raise();
  }
  if (overlap(copy.to, copy.from)) {
    Diagnostic(where, fmt::format("copy: {} {} from {} on overlaps what is copied, from {} on",
                                  target.name, braced(to.sizes_), braced(to.starts_),
                                  braced(from.starts_)))
        .token("copy")
        .note(target.where, target.name + " is made")
        .fix("copy through another buffer: copy engines keep no order among bytes")
        .raise();
  }
  program.operations.push_back(std::move(copy));
}

namespace {

void record_word(ir::Program& program, int stream, ProgramOperation::Kind kind, ProgramPart word,
                 const RunNumber& value, SourceLocation where) {
  const char* const verb = kind == ProgramOperation::Kind::write ? "write" : "wait";
  check_word(program, word, verb, where);
  check_word_value(value, verb, where);
  ProgramOperation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.where = where;
  operation.to = std::move(word);
  operation.value = value;
  program.operations.push_back(std::move(operation));
}

}  // namespace

void Stream::write(const Part& word, const RunNumber& value, SourceLocation where) const {
  ir::Program& program = *program_;
  record_word(program, number_, ProgramOperation::Kind::write,
              resolve(program, word.program_, word.buffer_, word.rank_,
                      program.streams[number_].rank, word.starts_, word.sizes_, "write", where),
              value, where);
}

void Stream::wait(const Part& word, const RunNumber& value, SourceLocation where) const {
  ir::Program& program = *program_;
  record_word(program, number_, ProgramOperation::Kind::wait,
              resolve(program, word.program_, word.buffer_, word.rank_,
                      program.streams[number_].rank, word.starts_, word.sizes_, "wait", where),
              value, where);
}

Event Stream::record(SourceLocation where) const {
  ProgramOperation record;
  record.kind = ProgramOperation::Kind::record;
  record.stream = number_;
  record.where = where;
  record.event = program_->events++;
  Event event;
  event.program_ = program_;
  event.number_ = record.event;
  program_->operations.push_back(std::move(record));
  return event;
}

void Stream::wait(const Event& event, SourceLocation where) const {
  ir::Program& program = *program_;
  const std::string& stream = program.streams[number_].name;
  if (!event.program_) {
    Diagnostic(where, fmt::format("wait: stream {} waits for an event that no stream has recorded",
                                  stream))
        .token("wait")
        .fix("record it first: Event done = other.record()")
        .raise();
  }
  if (event.program_.get() != &program) {
    Diagnostic(where, fmt::format("wait: the event is of program {}, not of {}",
                                  event.program_->name, program.name))
        .token("wait")
        .raise();
  }
  const auto record = std::find_if(
      program.operations.begin(), program.operations.end(), [&](const ProgramOperation& each) {
        return each.kind == ProgramOperation::Kind::record && each.event == event.number_;
      });
  const int rank = program.streams[record->stream].rank;
  if (rank != program.streams[number_].rank) {
    Diagnostic(where, fmt::format("wait: stream {} of rank {} waits for an event of rank {}",
                                  stream, program.streams[number_].rank, rank))
        .token("wait")
        .note(record->where, "it is recorded")
        .fix("signals between ranks: write in the one stream, wait in the other")
        .raise();
  }
  ProgramOperation wait;
  wait.kind = ProgramOperation::Kind::wait_event;
  wait.stream = number_;
  wait.where = where;
  wait.event = event.number_;
  program.operations.push_back(std::move(wait));
}

int Rank::count() const { return program_->ranks; }

Stream Rank::stream(const std::string& name, SourceLocation where) const {
  check_name(name, "stream", where);
  std::vector<ir::ProgramStream>& streams = program_->streams;
  auto place = std::find_if(streams.begin(), streams.end(), [&](const ir::ProgramStream& each) {
    return each.rank == number_ && each.name == name;
  });
  if (place == streams.end()) {
    streams.push_back({name, number_, where});
    place = streams.end() - 1;
  }
  return {program_, static_cast<int>(place - streams.begin())};
}

Program::Program(std::string name, int ranks, SourceLocation where)
    : program_(std::make_shared<ir::Program>()) {
  if (ranks < 1 || ranks > ir::kMaximumRanks) {
    Diagnostic(where, fmt::format("program {}: {} ranks, expected 1 to {}", name, ranks,
                                  ir::kMaximumRanks))
        .token("Program")
        .raise();
  }
  check_name(name, "Program", where);
  program_->name = std::move(name);
  program_->ranks = ranks;
  program_->where = where;
}

Buffer Program::buffer(std::string name, DType dtype, std::vector<std::int64_t> shape,
                       SourceLocation where) {
  check_name(name, "buffer", where);
  for (const ProgramBuffer& other : program_->buffers) {
    if (other.name != name) continue;
    Diagnostic(where, fmt::format("program {}: there is a buffer {} already", program_->name, name))
        .token(name)
        .note(other.where, name + " is made")
        .raise();
  }
  std::int64_t bytes = size_of(dtype);
  const bool fits = std::all_of(shape.begin(), shape.end(), [&](std::int64_t extent) {
    return extent >= 0 && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
  });
  if (!fits) {
    Diagnostic(where, fmt::format("buffer {}: shape {}", name, braced(shape)))
        .token(name)
        .fix("take sizes from 0 on, of less than 2^63 bytes in all")
        .raise();
  }
  program_->buffers.push_back(
      {ProgramBuffer::Kind::tensor, std::move(name), dtype, std::move(shape), where});
  Buffer made;
  made.program_ = program_;
  made.number_ = static_cast<int>(program_->buffers.size()) - 1;
  return made;
}

Buffer Program::signals(std::string name, std::int64_t count, SourceLocation where) {
  Buffer made = buffer(std::move(name), i32, {count}, where);
  program_->buffers.back().kind = ProgramBuffer::Kind::signals;
  return made;
}

Rank Program::rank(int number, SourceLocation where) const {
  if (number < 0 || number >= program_->ranks) {
    Diagnostic(where, fmt::format("rank {}: program {} has ranks 0 to {}", number, program_->name,
                                  program_->ranks - 1))
        .token("rank")
        .raise();
  }
  return {program_, number};
}

void Program::on_each_rank(const std::function<void(const Rank&)>& record) const {
  for (int number = 0; number < program_->ranks; ++number) record(Rank(program_, number));
}

const std::string& Program::name() const { return program_->name; }
int Program::ranks() const { return program_->ranks; }
const ir::Program& Program::finish() const { return *program_; }

ProgramMemory::ProgramMemory(const Program& program, std::uint64_t seed)
    : tensors(ir::initial_tensors(program.finish(), seed)), program_(program.program_) {}

HostTensor& ProgramMemory::at(const Buffer& buffer, int rank, SourceLocation where) {
  const bool known = buffer.program_ == program_ && rank >= 0 && rank < program_->ranks &&
                     buffer.number_ < static_cast<int>(tensors[rank].size());
  if (!known) {
    Diagnostic(where, fmt::format("at: the memory of program {} has no such buffer in rank {}",
                                  program_->name, rank))
        .token("at")
        .note(program_->where, program_->name + " is made")
        .fix(fmt::format("take a buffer that was made before the memory, in rank 0 to {}",
                         program_->ranks - 1))
        .raise();
  }
  return tensors[rank][buffer.number_];
}

}  // namespace tilewright
