#include "tilewright/program.h"
#include "tilewright/function_ref.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "ir/binding.h"
#include "ir/program.h"
#include "ir/text.h"
#include "language/names.h"
#include "language/program_recording.h"
#include "language/program_schedules.h"
#include "support/diagnostic.h"

namespace tilewright {

using ir::ProgramBuffer;
using ir::ProgramOperation;
using ir::ProgramPart;

// Those of kernels may bear a dim's name: what counts is that the program has declared one.
void check_dims(const ir::Program& program, const std::vector<Dim>& dims, std::string_view verb,
                SourceLocation where, bool in_scopes) {
  const auto is_known = [&](const std::string& name) {
    return name == ir::kMultiprocessors || (in_scopes && is_of_open_scope(program, name)) ||
           std::any_of(program.dims.begin(), program.dims.end(),
                       [&](const Dim& dim) { return dim.name() == name; });
  };
  const std::function<void(const Dim&)> check = [&](const Dim& dim) {
    if (dim.is_constant()) return;
    if (dim.kind() != Dim::Kind::symbol) {
      check(dim.lhs());
      return check(dim.rhs());
    }
    if (is_known(dim.name())) return;
    refuse_number_of_scope(program, dim.name(), verb, where, in_scopes);
    Diagnostic(where, fmt::format("{}: program {} has no dim {}", verb, program.name, dim.name()))
        .token(verb)
        .fix(fmt::format("declare it: const Dim {} = program.dim(\"{}\")", dim.name(), dim.name()))
        .raise();
  };
  for (const Dim& dim : dims) check(dim);
}

void check_number(const ir::Program& program, const RunNumber& number, std::string_view verb,
                  SourceLocation where) {
  for (const RunNumber::Term& term : number.terms) {
    if (term.scalar.empty()) {
      check_dims(program, {term.dim}, verb, where);
      continue;
    }
    const bool known = std::any_of(program.scalars.begin(), program.scalars.end(),
                                   [&](const auto& each) { return each.name == term.scalar; });
    if (known) continue;
    Diagnostic(where,
               fmt::format("{}: program {} has no scalar {}", verb, program.name, term.scalar))
        .token(verb)
        .fix("use the scalars of the program that is recorded")
        .raise();
  }
}

ProgramPart resolve(const ir::Program& program, const std::shared_ptr<ir::Program>& of, int buffer,
                    int rank, int own, const std::vector<Dim>& starts,
                    const std::vector<Dim>& sizes, std::string_view verb, SourceLocation where) {
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

namespace {

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

// Adds what no caller passes to the tensors that are given, among which signals may be.
void complete(ir::Program& program, const ir::Kernel& kernel, ProgramOperation& launch) {
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
    launch.tensors.push_back(ir::owned_part(program, launch, parameter));
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

// Of the last operation, a launch.
void count_epoch(ir::Program& program) {
  ProgramOperation& launch = program.operations.back();
  const std::optional<int> words = epoch_words(program, launch);
  const int rank = program.streams[launch.stream].rank;
  std::vector<ProgramOperation*> alike;
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

// What operations of memory that is to be zero come behind, in the stream of the first one.
void zero_before_use(ir::Program& program, const ProgramPart& part, const ProgramOperation& user) {
  const ProgramBuffer& buffer = program.buffers[part.buffer];
  if (buffer.kind != ProgramBuffer::Kind::zeroed) return;
  const bool done = std::any_of(
      program.operations.begin(), program.operations.end(), [&](const ProgramOperation& each) {
        return each.kind == ProgramOperation::Kind::zero && each.to.buffer == part.buffer &&
               each.to.rank == part.rank && each.to.sizes == buffer.shape;
      });
  if (done) return;
  const int rank = program.streams[user.stream].rank;
  if (rank != part.rank) {
    const std::string verb(ir::name_of(user.kind));
    Diagnostic(user.where, fmt::format("{}: {} begins as zeros, and the first to use it is a "
                                       "stream of rank {}",
                                       verb, name_of(program, part.buffer, part.rank), rank))
        .token(verb)
        .note(buffer.where, buffer.name + " is made")
        .fix("set it to zero in a stream of its own rank before: stream.zero(" + buffer.name + ")")
        .raise();
  }
  ProgramOperation zero;
  zero.kind = ProgramOperation::Kind::zero;
  zero.stream = user.stream;
  zero.where = user.where;
  zero.to = {part.buffer, part.rank, std::vector<Dim>(buffer.shape.size(), 0), buffer.shape};
  program.operations.insert(begin_of_scopes(program), std::move(zero));
}

// What a run finds in scratch memory, or in an output, is nothing to read. A write may be recorded
// behind a read only where words order the two.
void check_written_before(const ir::Program& program, const ProgramPart& part,
                          const ProgramOperation& reader, const std::string& as) {
  const ProgramBuffer& buffer = program.buffers[part.buffer];
  const bool holds_anything =
      buffer.kind == ProgramBuffer::Kind::scratch || buffer.kind == ProgramBuffer::Kind::out;
  const bool has_words = std::any_of(
      program.buffers.begin(), program.buffers.end(),
      [](const ProgramBuffer& each) { return each.kind == ProgramBuffer::Kind::signals; });
  if (!holds_anything || has_words || program.ranks > 1) return;
  const bool is_written = std::any_of(
      program.operations.begin(), program.operations.end(),
      [&](const ProgramOperation& each) { return ir::writes(program, each, part.buffer); });
  if (is_written) return;
  const std::string verb(ir::name_of(reader.kind));
  Diagnostic(reader.where, fmt::format("{}: {} reads {}, which nothing has written before", verb,
                                       as, buffer.name))
      .token(verb)
      .note(buffer.where, buffer.name + " is made")
      .fix(fmt::format("launch what writes {} first, or make it with Program::{}", buffer.name,
                       buffer.kind == ProgramBuffer::Kind::scratch ? "zeroed" : "inout"))
      .raise();
}

void check_written_before(const ir::Program& program, const ProgramOperation& reader) {
  if (reader.kind == ProgramOperation::Kind::copy) {
    check_written_before(program, reader.from, reader, "it");
  }
  if (reader.kind != ProgramOperation::Kind::launch) return;
  const ir::Kernel& kernel = *program.kernels[reader.kernel];
  std::size_t tensor = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor()) continue;
    const ProgramPart& part = reader.tensors[tensor++];
    if (parameter.kind != ir::Parameter::Kind::in) continue;
    check_written_before(program, part, reader,
                         fmt::format("{}, as its {},", kernel.name, parameter.name));
  }
}

}  // namespace

void record_operation(ir::Program& program, ProgramOperation operation) {
  ir::check_operation(program, operation);
  check_written_before(program, operation);
  for (const ProgramPart& part : operation.tensors) zero_before_use(program, part, operation);
  if (operation.kind == ProgramOperation::Kind::copy ||
      operation.kind == ProgramOperation::Kind::zero) {
    zero_before_use(program, operation.to, operation);
  }
  if (operation.kind == ProgramOperation::Kind::copy) {
    zero_before_use(program, operation.from, operation);
  }
  operation.scope = program.recording;
  program.operations.push_back(std::move(operation));
}

RunNumber::RunNumber(const Dim& dim) {
  if (dim.is_constant()) {
    base = static_cast<double>(dim.constant());
  } else {
    terms.push_back({1, {}, dim});
  }
}

RunNumber operator+(RunNumber a, const RunNumber& b) {
  a.base += b.base;
  a.per_run += b.per_run;
  a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
  return a;
}
RunNumber operator-(RunNumber a, const RunNumber& b) { return std::move(a) + b * -1; }
RunNumber operator*(RunNumber a, double factor) {
  a.base *= factor;
  a.per_run *= factor;
  for (RunNumber::Term& term : a.terms) term.factor *= factor;
  return a;
}
RunNumber operator*(double factor, RunNumber a) { return std::move(a) * factor; }

Part Part::narrowed(const std::vector<Dim>& starts, const std::vector<Dim>& sizes,
                    std::string_view verb, SourceLocation where) const {
  if (!program_) return *this;  // an error where it is used
  check_dims(*program_, starts, verb, where);
  check_dims(*program_, sizes, verb, where);
  if (ir::is_outside(starts, sizes, sizes_)) {
    const ProgramBuffer& buffer = program_->buffers[buffer_];
    Diagnostic(where,
               fmt::format("{} elements from {} on are not inside of {} {}", ir::braced(sizes),
                           ir::braced(starts), buffer.name, ir::braced(sizes_)))
        .token(verb)
        .note(buffer.where, buffer.name + " is made")
        .raise();
  }
  Part part = *this;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    part.starts_[axis] = part.starts_[axis] + starts[axis];
  }
  part.sizes_ = sizes;
  return part;
}

Part Part::box(const std::vector<Dim>& starts, const std::vector<Dim>& sizes,
               SourceLocation where) const {
  return narrowed(starts, sizes, "box", where);
}

Part Part::rows(const Dim& first, const Dim& count, SourceLocation where) const {
  std::vector<Dim> starts(sizes_.size(), 0), sizes = sizes_;
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

Part Buffer::rows(const Dim& first, const Dim& count, SourceLocation where) const {
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
  launch.kernel = find_kernel(program, ProgramSchedules::stated(kernel));
  launch.scalars = scalars;
  for (const Part& part : tensors) {
    launch.tensors.push_back(resolve(program, part.program_, part.buffer_, part.rank_, rank,
                                     part.starts_, part.sizes_, "launch", where));
  }
  for (const RunNumber& scalar : scalars) check_number(program, scalar, "launch", where);
  complete(program, kernel, launch);
  refuse_signals_in_scope(program, launch);
  record_operation(program, std::move(launch));
  count_epoch(program);
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
  record_operation(program, std::move(copy));
}

void Stream::zero(const Part& part, SourceLocation where) const {
  ir::Program& program = *program_;
  ProgramOperation zero;
  zero.kind = ProgramOperation::Kind::zero;
  zero.stream = number_;
  zero.where = where;
  zero.to = resolve(program, part.program_, part.buffer_, part.rank_, program.streams[number_].rank,
                    part.starts_, part.sizes_, "zero", where);
  record_operation(program, std::move(zero));
}

Event Stream::record(SourceLocation where) const {
  ProgramOperation record;
  record.kind = ProgramOperation::Kind::record;
  record.stream = number_;
  record.where = where;
  record.event = program_->events++;
  record.scope = program_->recording;
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
  wait.scope = program.recording;
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

Dim Program::dim(std::string name, DimFacts facts, SourceLocation where) {
  return declare_dim(program_->dims, std::move(name), facts, where);
}

RunNumber Program::scalar(std::string name, DType dtype, SourceLocation where) {
  check_name(name, "scalar", where);
  for (const ir::ProgramScalar& other : program_->scalars) {
    if (other.name != name) continue;
    Diagnostic(where, fmt::format("program {}: there is a scalar {} already", program_->name, name))
        .token(name)
        .note(other.where, name + " is made")
        .raise();
  }
  if (dtype != f32 && dtype != i32) {
    Diagnostic(where, fmt::format("scalar {} of {}", name, name_of(dtype)))
        .token(name)
        .fix("take f32 or i32, as kernels do")
        .raise();
  }
  RunNumber number = 0;
  number.terms.push_back({1, name, 0});
  program_->scalars.push_back({std::move(name), dtype, where});
  return number;
}

int add_buffer(ir::Program& program, ProgramBuffer::Kind kind, std::string name, DType dtype,
               std::vector<Dim> shape, SourceLocation where) {
  check_name(name, "buffer", where);
  for (const ProgramBuffer& other : program.buffers) {
    if (other.name != name) continue;
    Diagnostic(where, fmt::format("program {}: there is a buffer {} already", program.name, name))
        .token(name)
        .note(other.where, name + " is made")
        .raise();
  }
  check_dims(program, shape, name, where, /*in_scopes=*/false);
  if (!ir::has_room(dtype, shape)) {
    Diagnostic(where, fmt::format("buffer {}: shape {}", name, ir::braced(shape)))
        .token(name)
        .fix("take sizes from 0 on, of less than 2^63 bytes in all")
        .raise();
  }
  program.buffers.push_back({kind, std::move(name), dtype, std::move(shape), where});
  return static_cast<int>(program.buffers.size()) - 1;
}

Buffer Program::buffer(std::string name, DType dtype, std::vector<Dim> shape,
                       SourceLocation where) {
  return {program_, add_buffer(*program_, ProgramBuffer::Kind::tensor, std::move(name), dtype,
                               std::move(shape), where)};
}

Buffer Program::in(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where) {
  return {program_, add_buffer(*program_, ProgramBuffer::Kind::in, std::move(name), dtype,
                               std::move(shape), where)};
}

Buffer Program::out(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where) {
  return {program_, add_buffer(*program_, ProgramBuffer::Kind::out, std::move(name), dtype,
                               std::move(shape), where)};
}

Buffer Program::scratch(std::string name, DType dtype, std::vector<Dim> shape,
                        SourceLocation where) {
  return {program_, add_buffer(*program_, ProgramBuffer::Kind::scratch, std::move(name), dtype,
                               std::move(shape), where)};
}

Buffer Program::zeroed(std::string name, DType dtype, std::vector<Dim> shape,
                       SourceLocation where) {
  return {program_, add_buffer(*program_, ProgramBuffer::Kind::zeroed, std::move(name), dtype,
                               std::move(shape), where)};
}

Buffer Program::signals(std::string name, const Dim& count, SourceLocation where) {
  return {program_, add_buffer(*program_, ProgramBuffer::Kind::signals, std::move(name), i32,
                               {count}, where)};
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

void Program::on_each_rank(FunctionRef<void(const Rank&)> record) const {
  for (int number = 0; number < program_->ranks; ++number) record(Rank(program_, number));
}

const std::string& Program::name() const { return program_->name; }
int Program::ranks() const { return program_->ranks; }
const ir::Program& Program::finish() const { return *program_; }

}  // namespace tilewright
