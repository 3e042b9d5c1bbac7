#include "simulator/machine/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "ir/program_exchanges.h"
#include "simulator/machine/control_only.h"
#include "simulator/machine/world.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::simulator {
namespace {

using Kind = ir::ProgramOperation::Kind;

GlobalMemory::Range range_of(std::byte* first, std::int64_t bytes) {
  return {first, first + bytes};
}

}  // namespace

Streams::Streams(World& world, const ir::Program& program, const std::vector<ir::Kernel>& kernels,
                 ir::BufferAddress address, const MachineOptions& options, std::int64_t runs)
    : world_(world),
      program_(program),
      kernels_(kernels),
      address_(std::move(address)),
      options_(options),
      runs_(runs),
      streams_(program.streams.size()),
      events_(program.events) {
  std::vector<bool> written(program.buffers.size(), false);
  for (const ir::ProgramOperation& operation : program.operations) {
    streams_[operation.stream].operations.push_back(&operation);
    for (int buffer = 0; buffer < static_cast<int>(written.size()); ++buffer) {
      if (ir::writes(program, operation, buffer)) written[buffer] = true;
    }
  }
  for (int buffer = 0; buffer < static_cast<int>(written.size()); ++buffer) {
    for (int rank = 0; rank < program.ranks; ++rank) {
      const auto range = range_of(address_(buffer, rank), program.buffers[buffer].bytes());
      world.memory.add_name(range, ir::name_of(program, buffer, rank));
      if (written[buffer] && options.check_order) world.memory.add_written(range);
    }
  }
  find_writers();
  for (Stream& stream : streams_) {
    auto nothing = std::make_shared<Beyond>();
    nothing->streams = Clock(static_cast<int>(streams_.size()));
    stream.known = std::move(nothing);
  }
}

void Streams::find_writers() {
  std::set<int> of_kernels;  // buffers
  for (const ir::ProgramOperation& operation : program_.operations) {
    if (operation.kind != Kind::launch) continue;
    for (const ir::ProgramPart& part : operation.tensors) of_kernels.insert(part.buffer);
  }
  std::set<const std::byte*> of_several;
  for (const ir::ProgramOperation& operation : program_.operations) {
    if (operation.kind != Kind::write || of_kernels.count(operation.to.buffer) != 0) continue;
    const std::byte* const word = word_of(operation);
    const auto [writer, is_new] = only_writers_.emplace(word, operation.stream);
    if (!is_new && writer->second != operation.stream) of_several.insert(word);
  }
  for (const std::byte* word : of_several) only_writers_.erase(word);
}

bool Streams::knows_least(const Stream& stream) const {
  const WordWait wait = wait_of(stream);
  std::int32_t value = 0;
  std::memcpy(&value, wait.word, sizeof(value));
  return wait.compare == Compare::ge && value == wait.value && only_writers_.count(wait.word) != 0;
}

void Streams::tell_of_words(const Stream& stream) const {
  if (!options_.timing || !world_.report.words.empty()) return;
  world_.report.words = fmt::format("what a wait finds in a word at {}",
                                    format_location(stream.current->source->where));
}

void Streams::begin() {
  for (std::size_t i = 0; i < streams_.size(); ++i) enter(static_cast<int>(i));
}

bool Streams::done() const {
  return std::all_of(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.operations.empty() || (stream.state == State::run_over && stream.run == runs_);
  });
}

void Streams::learn(Stream& stream, const std::shared_ptr<const Beyond>& known) const {
  if (!known || known == stream.known) return;
  View view;
  view.beyond = stream.known;
  view.join_beyond(known);
  stream.known = std::move(view.beyond);
}

// Clusters of launches that are over say nothing that their stream's count does not.
void Streams::forget_what_is_over(Stream& stream) const {
  auto known = std::make_shared<Beyond>(*stream.known);
  const auto is_over = [&](const Beyond::Cluster& cluster) {
    const World::Actor& actor = world_.actor(cluster.number);
    return known->streams[actor.stream] > actor.position;
  };
  known->clusters.erase(std::remove_if(known->clusters.begin(), known->clusters.end(), is_over),
                        known->clusters.end());
  stream.known = std::move(known);
}

// All streams of a rank end a run before one of them begins the next one, which knows of all that
// the one before has done.
void Streams::begin_runs(int rank) {
  std::vector<int> own;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const bool works = !streams_[i].operations.empty();
    if (works && program_.streams[i].rank == rank) own.push_back(static_cast<int>(i));
  }
  const bool can_begin = !own.empty() && std::all_of(own.begin(), own.end(), [&](int i) {
    return streams_[i].state == State::run_over && streams_[i].run < runs_;
  });
  if (!can_begin) return;
  std::int64_t ended = 0;
  for (const int i : own) {
    learn(streams_[own.front()], streams_[i].known);
    ended = std::max(ended, streams_[i].time);
  }
  for (const int i : own) {
    streams_[i].known = streams_[own.front()].known;
    streams_[i].time = ended;
    streams_[i].missed.clear();
    ++streams_[i].run;
    streams_[i].next = 0;
  }
  for (const int i : own) enter(i);
}

WordWait Streams::wait_of(const Stream& stream) const {
  const ir::ProgramOperation& operation = *stream.operations[stream.next];
  return {word_of(operation), operation.compare, ir::word_value(operation.value, stream.run)};
}

std::byte* Streams::word_of(const ir::ProgramOperation& operation) const {
  return argument_of(program_, operation.to, address_).data;
}

void Streams::enter(int number) {
  Stream& stream = streams_[number];
  stream.current = nullptr;
  if (stream.next == stream.operations.size()) {
    stream.state = State::run_over;
    return;
  }
  const ir::ProgramOperation& operation = *stream.operations[stream.next];
  if (operation.kind == Kind::wait && !world_.holds(wait_of(stream))) {
    stream.state = State::word;
    return;
  }
  if (operation.kind == Kind::wait_event && events_[operation.event].run != stream.run) {
    stream.state = State::event;
    return;
  }
  if (const Launch* const launch = held_by(stream)) {
    stream.state = State::multiprocessor;
    stream.held_by = launch;
    return;
  }
  if (stream.state == State::multiprocessor && world_.recorder) {
    world_.recorder->found_multiprocessor(number, *stream.held_by);
  }
  stream.state = State::ready;
  world_.add_stream_event(number);
}

const Launch* Streams::held_by(const Stream& stream) const {
  const ir::ProgramOperation& operation = *stream.operations[stream.next];
  const int rank = named(operation).rank;
  if (operation.to.rank != rank) return nullptr;
  const bool by_kernel = operation.kind == Kind::copy
                             ? operation.from.rank == rank
                             : operation.kind == Kind::zero && is_more_than_a_word(operation);
  return by_kernel ? world_.holder(rank) : nullptr;
}

// Four bytes are set whatever is held.
bool Streams::is_more_than_a_word(const ir::ProgramOperation& operation) const {
  const TensorArgument to = argument_of(program_, operation.to, address_);
  std::int64_t bytes = 0;
  ir::for_each_rows(to, to, [&](const ir::CopiedRows& set) { bytes += set.rows * set.bytes; });
  return bytes > 4;
}

void Streams::look_again() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const State state = streams_[i].state;
    if (state == State::word || state == State::event || state == State::multiprocessor) {
      enter(static_cast<int>(i));
    }
  }
}

void Streams::finish(int number) {
  Stream& stream = streams_[number];
  auto known = std::make_shared<Beyond>(*stream.known);
  if (world_.recorder) world_.recorder->executed(*stream.current, /*over=*/true);
  known->streams[number] = ++stream.position;
  stream.known = std::move(known);
  ++stream.next;
  enter(number);
  if (stream.state == State::run_over) begin_runs(program_.streams[number].rank);
}

void Streams::happen(int number) {
  Stream& stream = streams_[number];
  const ir::ProgramOperation& operation = *stream.operations[stream.next];
  if (!stream.current) {
    // A launch may have begun since.
    if (held_by(stream)) return enter(number);
    StreamOperation& begun = operations_.emplace_back();
    begun.source = &operation;
    begun.run = stream.run;
    begun.place.where = operation.where;
    begun.instruction.operation = &begun.place;
    begun.actor =
        world_.add_actor({nullptr, &begun, number, stream.position, program_.streams[number].rank});
    if (operation.kind == Kind::wait || operation.kind == Kind::write) {
      begun.word = word_of(operation);
    }
    stream.current = &begun;
  }
  StreamOperation& current = *stream.current;
  if (world_.recorder) world_.recorder->starts(current);
  const bool over = step(stream);
  // A launch is over with its last cluster.
  if (!over) {
    if (world_.recorder) world_.recorder->executed(current, /*over=*/false);
    return;
  }
  finish(number);
  if (operation.kind == Kind::record) look_again();
}

bool Streams::step(Stream& stream) {
  const ir::ProgramOperation& operation = *stream.operations[stream.next];
  const int number = operation.stream;
  switch (operation.kind) {
    case Kind::launch:
      if (target::target_of(kernels_[operation.kernel]).core) {
        launch_on_core(stream);
        return true;
      }
      launch(stream);
      return false;
    case Kind::copy:
      if (copy(stream)) return true;
      world_.add_stream_event(number);
      return false;
    case Kind::zero:
      zero(stream);
      return true;
    case Kind::write:
      write(stream);
      return true;
    case Kind::wait:
      if (wait(stream)) return true;
      enter(number);
      return false;
    case Kind::record:
      events_[operation.event] = {stream.run, stream.known, stream.time};
      return true;
    case Kind::wait_event:
      learn(stream, events_[operation.event].known);
      stream.time = std::max(stream.time, events_[operation.event].time);
      return true;
  }
  return false;
}

// Reading and writing are two instants: whether both are over.
bool Streams::copy(Stream& stream) {
  const ir::ProgramOperation& operation = *stream.current->source;
  if (!stream.read.empty()) {
    for (const auto& [to, bytes] : stream.read) {
      const auto size = static_cast<std::int64_t>(bytes.size());
      access(stream, to, size, /*write=*/true, /*atomic=*/false);
      std::memcpy(to, bytes.data(), bytes.size());
      world_.changed(to, size);
    }
    stream.read.clear();
    return true;
  }
  const TensorArgument to = argument_of(program_, operation.to, address_);
  const TensorArgument from = argument_of(program_, operation.from, address_);
  ir::for_each_rows(to, from, [&](const ir::CopiedRows& copied) {
    for (std::int64_t row = 0; row < copied.rows; ++row) {
      std::byte* const source = copied.from + row * copied.from_pitch;
      access(stream, source, copied.bytes, /*write=*/false, /*atomic=*/false);
      stream.read.emplace_back(copied.to + row * copied.to_pitch,
                               std::vector<std::byte>(source, source + copied.bytes));
    }
  });
  return stream.read.empty();
}

// At one instant: nobody who is ordered behind it sees a part of it.
void Streams::zero(Stream& stream) {
  const TensorArgument to = argument_of(program_, stream.current->source->to, address_);
  ir::for_each_rows(to, to, [&](const ir::CopiedRows& set) {
    for (std::int64_t row = 0; row < set.rows; ++row) {
      std::byte* const first = set.to + row * set.to_pitch;
      access(stream, first, set.bytes, /*write=*/true, /*atomic=*/false);
      std::memset(first, 0, static_cast<std::size_t>(set.bytes));
      world_.changed(first, set.bytes);
    }
  });
}

void Streams::write(Stream& stream) {
  const ir::ProgramOperation& operation = *stream.current->source;
  std::byte* const word = word_of(operation);
  access(stream, word, 4, /*write=*/true, /*atomic=*/true);
  auto known = std::make_shared<Beyond>(*stream.known);
  known->forget_fences();
  std::vector<Handed>& handed = world_.memory.handed(word);
  handed.clear();
  handed.push_back({std::move(known), make_access(*stream.current, true, true), true});
  const std::int32_t value = ir::word_value(operation.value, stream.run);
  std::int32_t before = 0;
  std::memcpy(&before, word, sizeof(before));
  if (value <= before && only_writers_.erase(word) != 0) tell_of_words(stream);
  std::memcpy(word, &value, sizeof(value));
  world_.changed(word, sizeof(value));
}

bool Streams::wait(Stream& stream) {
  const WordWait wait = wait_of(stream);
  if (!world_.holds(wait)) return false;
  if (!knows_least(stream)) tell_of_words(stream);
  access(stream, wait.word, 4, /*write=*/false, /*atomic=*/true);
  for (const Handed& handed : world_.memory.handed(wait.word)) {
    if (handed.released && handed.by.scope == Scope::system) {
      learn(stream, handed.known);
    } else {
      stream.missed.push_back(handed);
    }
  }
  return true;
}

void Streams::launch(Stream& stream) {
  const ir::ProgramOperation& operation = *stream.current->source;
  const ir::ProgramStream& named = this->named(operation);
  prepared_.push_back(std::make_unique<Prepared>());
  Prepared& prepared = *prepared_.back();
  prepared.arguments = arguments_of(program_, operation, stream.run, address_);
  prepared.kernel =
      prepare(kernels_[operation.kernel], prepared.arguments, options_.multiprocessors);
  if (options_.control_only) keep_control_only(prepared.kernel, prepared.arguments);
  check_capacity(prepared.kernel, world_.log);
  LaunchPlace place;
  place.rank = named.rank;
  place.label = " of " + prepared.kernel.name;
  if (program_.ranks > 1) place.label += fmt::format(" of rank {}", named.rank);
  place.name =
      fmt::format("{}{}, run {}", prepared.kernel.name,
                  program_.ranks > 1 ? fmt::format(" of rank {}", named.rank) : "", stream.run);
  place.launched = fmt::format(", launched at {} in stream {}, run {}",
                               format_location(operation.where), named.name, stream.run);
  place.stream = operation.stream;
  place.run = stream.run;
  place.position = stream.position;
  // A launch sees what came before through every proxy.
  auto known = std::make_shared<Beyond>(*stream.known);
  known->fence();
  place.known = std::move(known);
  stream.state = State::launched;
  world_.launch(prepared.kernel, prepared.arguments, std::move(place));
}

void Streams::launch_on_core(Stream& stream) {
  const ir::ProgramOperation& operation = *stream.current->source;
  const ir::Kernel& kernel = kernels_[operation.kernel];
  check_core_options(kernel, options_);
  CoreDevice& device =
      cores_.try_emplace(named(operation).rank, options_, world_.random, world_.log, world_.report)
          .first->second;
  const Arguments arguments = arguments_of(program_, operation, stream.run, address_);
  CoreTouched touched;
  stream.time = device.launch(kernel, arguments, stream.time, &touched);
  for (std::size_t i = 0; i < touched.size(); ++i) {
    const TensorArgument& tensor = arguments.tensors[i];
    const std::vector<std::uint8_t>& of = touched[i];
    const std::int64_t bytes = size_of(tensor.dtype);
    for (const bool write : {false, true}) {
      const std::uint8_t bit = write ? 2 : 1;
      for (std::size_t first = 0, end = 0; first < of.size(); first = end + 1) {
        for (end = first; end < of.size() && (of[end] & bit) != 0;) ++end;
        if (end == first) continue;
        std::byte* const begin = tensor.data + static_cast<std::int64_t>(first) * bytes;
        const std::int64_t size = static_cast<std::int64_t>(end - first) * bytes;
        access(stream, begin, size, write, /*atomic=*/false);
        if (write) world_.changed(begin, size);
      }
    }
  }
  check_workspaces(stream);
}

void Streams::count() const {
  for (const auto& [rank, device] : cores_) device.count();
}

void Streams::launch_over(const Launch& launch) {
  const int number = launch.place.stream;
  Stream& stream = streams_[number];
  check_workspaces(stream);
  learn(stream, launch.left());
  finish(number);
  forget_what_is_over(stream);
}

void Streams::check_workspaces(const Stream& stream) {
  const ir::ProgramOperation& operation = *stream.current->source;
  for (const ir::ProgramPart& part : operation.tensors) {
    const ir::ProgramBuffer& buffer = program_.buffers[part.buffer];
    if (buffer.kind != ir::ProgramBuffer::Kind::workspace) continue;
    std::byte* const first = address_(part.buffer, part.rank);
    for (std::int64_t i = 0; i < ir::constant(buffer.shape[0]); ++i) {
      std::int32_t value = 0;
      std::memcpy(&value, first + 4 * i, 4);
      if (value == 0) continue;
      world_.log.add({"workspace", buffer.where, operation.where,
                      fmt::format("workspace {}[{}] is {} after the launch", buffer.name, i, value),
                      "what sets it back to 0: the next launch begins with it"});
    }
  }
}

Access Streams::make_access(const StreamOperation& operation, bool write, bool atomic) const {
  Access access;
  access.instruction = &operation.instruction;
  access.epoch = 1;
  access.cluster = operation.actor;
  access.write = write;
  access.atomic = atomic;
  access.scope = Scope::system;
  access.rank = -1;  // no thread of the device: scopes below system do not have it
  return access;
}

void Streams::access(const Stream& stream, const std::byte* first, std::int64_t bytes, bool write,
                     bool atomic) {
  if (!options_.check_order || !world_.memory.is_written(first)) return;
  const Access access = make_access(*stream.current, write, atomic);
  ByteSet set;
  set.add(reinterpret_cast<std::uint64_t>(first), bytes);
  set.drain([&](std::uint64_t block, Bytes touched) {
    world_.memory.shadow(block).touch(access, touched, [&](const ShadowBlock::Record& earlier) {
      world_.note_read(access, earlier);
      if (earlier.cluster == access.cluster || world_.is_known(stream.known.get(), earlier)) {
        return;
      }
      const Bytes both{touched.cells & earlier.bytes.cells,
                       static_cast<std::uint16_t>(touched.mask & earlier.bytes.mask)};
      const auto [low, high] = both.extent();
      report(stream, earlier, access, reinterpret_cast<const std::byte*>(block + low),
             high - low + 1);
    });
  });
}

void Streams::report(const Stream& stream, const Access& earlier, const Access& access,
                     const std::byte* first, std::int64_t bytes) const {
  Fault fault;
  fault.kind = "race";
  fault.first = earlier.instruction->where();
  fault.second = access.instruction->where();
  fault.message = fmt::format("race: global {}\n{}\n{}", world_.memory.describe(first, bytes),
                              world_.access_line(earlier), world_.access_line(access));
  fault.missing = world_.missing_between(earlier, access);
  for (const Handed& missed : stream.missed) {
    if (world_.is_known(missed.known.get(), earlier)) {
      fault.missing = world_.why_missed(missed, access);
    }
  }
  world_.log.add(std::move(fault));
}

std::string Streams::access_line(const Access& access, const StreamOperation& operation) const {
  const ir::ProgramOperation& source = *operation.source;
  std::string_view name = ir::name_of(source.kind);
  if (source.kind == Kind::write) name = "write of word";
  if (source.kind == Kind::wait_event) name = "wait";
  return fmt::format("  {:6} {:16} {}  {}, run {}", access.write ? "write" : "read", name,
                     format_location(source.where), name_of(program_, named(source)),
                     operation.run);
}

namespace {

std::string missing_at(const ir::MeetingWait& meeting) {
  if (!meeting.comes) return meeting.text + ": it never comes to it";
  return fmt::format("{}: it comes there at {}, behind what it waits for", meeting.text,
                     format_location(*meeting.comes));
}

}  // namespace

bool Streams::has_writer(const ir::ProgramOperation& wait) const {
  return std::any_of(program_.operations.begin(), program_.operations.end(), [&](const auto& each) {
    if (each.kind == Kind::write) return word_of(each) == word_of(wait);
    return each.kind == Kind::launch &&
           std::any_of(each.tensors.begin(), each.tensors.end(),
                       [&](const auto& part) { return part.buffer == wait.to.buffer; });
  });
}

std::vector<Streams::Waiting> Streams::waiting() const {
  std::vector<Waiting> list;
  for (const Stream& stream : streams_) {
    const bool waits = stream.state == State::word || stream.state == State::event ||
                       stream.state == State::multiprocessor;
    if (!waits) continue;
    const ir::ProgramOperation& operation = *stream.operations[stream.next];
    Waiting waiting;
    waiting.where = operation.where;
    std::string what;
    if (stream.state == State::word) {
      const std::optional<ir::MeetingWait> meeting = ir::meeting_wait(program_, operation);
      what = meeting ? meeting->text : world_.wait_text(wait_of(stream));
      waiting.missing = meeting ? missing_at(*meeting) : world_.missing_value(wait_of(stream));
      waiting.is_cause = !meeting && !has_writer(operation);
      if (waiting.is_cause) waiting.missing += ", and nothing in the program writes it";
    } else if (stream.state == State::multiprocessor) {
      waiting.is_cause = true;
      what = fmt::format("a multiprocessor: {} holds them all", stream.held_by->place.name);
      const bool zeros = operation.kind == Kind::zero;
      waiting.missing = fmt::format(
          "{0} before the launch, in its stream, or in the kernel itself: drivers {1} by a kernel",
          zeros ? "set to zero" : "copy", zeros ? "set memory" : "copy within a GPU");
    } else {
      const auto record = std::find_if(
          program_.operations.begin(), program_.operations.end(), [&](const auto& each) {
            return each.kind == Kind::record && each.event == operation.event;
          });
      what = fmt::format("the event of {} in {}", format_location(record->where),
                         name_of(program_, named(*record)));
    }
    waiting.text = fmt::format("{}  {}  waits for {} (run {})", name_of(program_, named(operation)),
                               format_location(operation.where), what, stream.run);
    list.push_back(std::move(waiting));
  }
  return list;
}

MachineReport run_program(const ir::Program& program, const std::vector<ir::Kernel>& kernels,
                          const ir::BufferAddress& address, const MachineOptions& options,
                          std::int64_t runs) {
  MachineReport report;
  World world(options, report);
  Streams streams(world, program, kernels, address, options, runs);
  world.streams = &streams;
  if (options.recorder) options.recorder->begin(program, kernels, address, runs);
  try {
    streams.begin();
    world.run();
  } catch (const Stopped&) {
  }
  if (options.recorder) options.recorder->end(report.faults);
  streams.count();
  world.count();
  return report;
}

}  // namespace tilewright::simulator
