#include "simulator/machine/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/core/core_machine.h"
#include "support/diagnostic.h"
#include "target/devices.h"
#include "target/target.h"

namespace tilewright::simulator {
namespace {

using ProgramKind = ir::ProgramOperation::Kind;
using Kind = TraceSlice::Kind;

// Of a stream, in cycles, an event that is recorded. An assumption.
constexpr std::int64_t kStreamOperation = 100;

std::int64_t bytes_of(const ir::Program& program, const ir::ProgramPart& part) {
  std::int64_t bytes = size_of(program.buffers[part.buffer].dtype);
  for (const Dim& extent : part.sizes) bytes *= ir::constant(extent);
  return bytes;
}

}  // namespace

void TraceRecorder::begin(const ir::Program& program, const std::vector<ir::Kernel>& kernels,
                          const ir::BufferAddress& address, std::int64_t runs) {
  program_ = &program;
  // Of what streams do beside launches a core with explicit memories has no figures of its own.
  of_cores_ = !kernels.empty() && target::target_of(kernels.front()).core != nullptr;
  const bool has_figures = !kernels.empty() && !of_cores_;
  context_.links.begin(has_figures ? kernels.front().target : ir::default_target(), program.ranks);
  for (int rank = 0; rank < program.ranks; ++rank) {
    for (int buffer = 0; buffer < static_cast<int>(program.buffers.size()); ++buffer) {
      context_.links.add_memory(address(buffer, rank), program.buffers[buffer].bytes(), rank);
    }
  }
  runs_ = runs;
  streams_.resize(program.streams.size());
  events_.resize(static_cast<std::size_t>(program.events));
  for (const ir::ProgramStream& stream : program.streams) {
    context_.trace.streams.push_back({name_of(program, stream), stream.rank, {}});
  }
  for (const ir::ProgramOperation& operation : program.operations) {
    streams_[operation.stream].operations.push_back(&operation);
  }
}

void TraceRecorder::starts(const StreamOperation& operation) {
  current_stream_ = &operation;
  current_launch_ = nullptr;
  core_begin_ = INT64_MAX;
  core_end_ = 0;
  // A run begins when all streams of the rank have ended the one before.
  StreamState& stream = state_of(operation);
  const int rank = program_->streams[operation.source->stream].rank;
  const auto before = run_ends_.find({rank, operation.run - 1});
  if (before != run_ends_.end()) stream.clock = std::max(stream.clock, before->second);
  if (operation.source->kind == ProgramKind::copy && stream.copy != &operation) {
    stream.copy = &operation;
    stream.copy_end =
        of_cores_ ? stream.clock + kStreamOperation : copy_end(*operation.source, stream.clock);
  }
}

void TraceRecorder::found_multiprocessor(int stream, const Launch& launch) {
  std::int64_t& clock = streams_[static_cast<std::size_t>(stream)].clock;
  clock = std::max(clock, of(launch).end());
}

void TraceRecorder::changed(const std::byte* first, std::int64_t bytes) {
  if (current_launch_) current_launch_->changed(first, bytes);
  if (!current_stream_ || current_stream_->source->kind != ProgramKind::write) return;
  const StreamOperation& operation = *current_stream_;
  const LinkTimes& links = context_.links;
  const bool travels =
      operation.source->to.rank != program_->streams[operation.source->stream].rank;
  context_.words[first].add(
      {state_of(operation).clock +
           links.cycles(links.link().stream_word + (travels ? links.link().word : 0)),
       context_.text(fmt::format("{} writes it ({})",
                                 name_of(*program_, program_->streams[operation.source->stream]),
                                 format_location(operation.source->where)))});
}

void TraceRecorder::slice(const StreamOperation& operation, Kind kind, const std::string& name,
                          int detail, std::int64_t end) {
  StreamState& stream = state_of(operation);
  TraceSlice made;
  made.kind = kind;
  made.start = stream.clock;
  made.end = stream.clock = std::max(end, stream.clock);
  made.name = context_.text(name);
  made.detail = detail;
  made.iteration = context_.text(fmt::format("run {}", operation.run));
  made.where = operation.source->where;
  context_.trace.streams[operation.source->stream].slices.push_back(made);
}

std::string TraceRecorder::word_text(const ir::ProgramOperation& operation) const {
  return fmt::format("{}[{}]", name_of(*program_, operation.to.buffer, operation.to.rank),
                     ir::constant(operation.to.starts.front()));
}

std::string TraceRecorder::wait_name(const ir::ProgramOperation& operation) const {
  return operation.kind == ProgramKind::wait ? "waits for " + word_text(operation)
                                             : fmt::format("waits for event {}", operation.event);
}

void TraceRecorder::wait_until(const StreamOperation& operation, const TraceSignal& signal) {
  if (signal.time <= state_of(operation).clock) return;
  slice(operation, Kind::wait, wait_name(*operation.source), signal.cause, signal.time);
}

void TraceRecorder::executed(const StreamOperation& operation, bool over) {
  current_stream_ = nullptr;
  if (!over) return;
  StreamState& stream = state_of(operation);
  const std::int64_t before = stream.clock;
  finish(operation);
  const ProgramKind kind = operation.source->kind;
  if (of_cores_ && kind != ProgramKind::launch) {
    // They are drawn, and take no time.
    if (kind == ProgramKind::record) events_[operation.source->event].time = before;
    stream.clock = kind == ProgramKind::wait_event
                       ? std::max(before, events_[operation.source->event].time)
                       : before;
  }
  ++stream.over;
  const int rank = program_->streams[operation.source->stream].rank;
  std::int64_t& end = run_ends_[{rank, operation.run}];
  end = std::max(end, stream.clock);
}

void TraceRecorder::finish(const StreamOperation& operation) {
  const ir::ProgramOperation& source = *operation.source;
  StreamState& stream = state_of(operation);
  const std::int64_t soon = stream.clock + kStreamOperation;
  const LinkTimes& links = context_.links;
  const std::int64_t before = stream.clock;
  // Who finds that what it waits for was there goes on at once.
  const auto waited = [&](std::int64_t since) {
    return stream.clock > since ? links.cycles(links.link().stream_wait) : kStreamOperation;
  };
  switch (source.kind) {
    case ProgramKind::launch:
      if (stream.launch == nullptr) {  // of a core with explicit memories
        stream.clock = std::max(core_begin_ == INT64_MAX ? 0 : core_begin_, stream.clock);
        slice(operation, Kind::compute, program_->kernels[source.kernel]->name, 0, core_end_);
        return;
      }
      slice(operation, Kind::compute, program_->kernels[source.kernel]->name, 0,
            stream.launch->end());
      return;
    case ProgramKind::copy: {
      slice(operation, Kind::memory,
            fmt::format("copy to {}", name_of(*program_, source.to.buffer, source.to.rank)),
            context_.text("from " + name_of(*program_, source.from.buffer, source.from.rank)),
            stream.copy_end);
      stream.copy = nullptr;
      return;
    }
    case ProgramKind::zero:
      slice(operation, Kind::memory,
            "zeros " + name_of(*program_, source.to.buffer, source.to.rank), 0, soon);
      return;
    case ProgramKind::write:
      slice(operation, Kind::issue, "writes " + word_text(source), 0,
            stream.clock + links.cycles(links.link().stream_word));
      return;
    case ProgramKind::wait:
      if (const auto word = context_.words.find(operation.word); word != context_.words.end()) {
        wait_until(operation, word->second);
      }
      slice(operation, Kind::barrier, "wait", context_.text(word_text(source)),
            stream.clock + waited(before));
      return;
    case ProgramKind::record:
      slice(operation, Kind::issue, fmt::format("records event {}", source.event), 0, soon);
      events_[source.event] = {
          stream.clock,
          context_.text(fmt::format("{} records it ({})",
                                    name_of(*program_, program_->streams[source.stream]),
                                    format_location(source.where)))};
      return;
    case ProgramKind::wait_event:
      wait_until(operation, events_[source.event]);
      slice(operation, Kind::barrier, "wait", context_.text(fmt::format("event {}", source.event)),
            stream.clock + waited(before));
      return;
  }
}

void TraceRecorder::begin(const Launch& launch) {
  std::int64_t start = 0;
  StreamState* const stream = program_ ? &streams_[launch.place.stream] : nullptr;
  if (stream) start = stream->clock + context_.links.cycles(context_.links.link().launch);
  launches_.push_back(std::make_unique<LaunchTrace>(context_, launch, start));
  by_launch_[&launch] = launches_.back().get();
  if (stream) stream->launch = launches_.back().get();
}

std::int64_t TraceRecorder::copy_end(const ir::ProgramOperation& copy, std::int64_t start) {
  LinkTimes& links = context_.links;
  const target::Link& link = links.link();
  const std::int64_t bytes = bytes_of(*program_, copy.to);
  const std::int64_t begun = start + links.cycles(link.engine_start);
  if (copy.from.rank != copy.to.rank) {
    // In pieces, between which those of other streams find a place.
    constexpr std::int64_t kPiece = 128 << 10;
    std::int64_t end = begun;
    for (std::int64_t sent = 0; sent < bytes; sent += kPiece) {
      end = links.send(copy.from.rank, copy.to.rank, std::min(kPiece, bytes - sent), link.copied,
                       begun);
    }
    return end;
  }
  // Read and written.
  return begun + links.cycles(2 * static_cast<double>(bytes) / links.device().reached.memory_bytes);
}

std::int64_t TraceRecorder::time_of(const Warp& warp) { return of(warp).clock_of(warp); }

std::int64_t TraceRecorder::time_of(const Event& event) {
  switch (event.kind) {
    case Event::Kind::load:
      return of(*event.issuer).load_end();
    case Event::Kind::store:
    case Event::Kind::tensor_work:
      return of(*event.issuer).tensor_work_end(*event.issuer);
    case Event::Kind::products:
    case Event::Kind::answer:
      return of(*event.issuer).clock_of(*event.issuer);
    case Event::Kind::stream:
      break;
  }
  const StreamState& stream = streams_[event.stream];
  return stream.copy ? stream.copy_end : stream.clock;
}

void TraceRecorder::starts(const Warp& warp, const Instruction& instruction) {
  current_stream_ = nullptr;
  current_launch_ = &of(warp);
  current_launch_->starts(warp, instruction);
}

void TraceRecorder::executed(const Warp& warp, const Instruction& instruction) {
  current_launch_->executed(warp, instruction);
  current_launch_ = nullptr;
}

void TraceRecorder::load_issued(const Event& event) { of(*event.issuer).load_issued(event); }

void TraceRecorder::load_finished(const Event& event) {
  of(*event.destination).load_finished(event);
}

void TraceRecorder::arrived(const Warp& warp, const Cta& cta, int barrier) {
  of(warp).arrived(warp, cta, barrier);
}

void TraceRecorder::phase_completed(const Cta& cta, int barrier) {
  of(cta).phase_completed(cta, barrier);
}

std::optional<TraceMark> TraceRecorder::cut_short() const {
  for (const auto& trace : launches_) {
    if (trace->cut_short()) return trace->cut_short();
  }
  return stream_cut_short_;
}

void TraceRecorder::end_open_wait(std::size_t number, std::int64_t end) {
  StreamState& stream = streams_[number];
  const auto size = static_cast<std::int64_t>(stream.operations.size());
  if (size == 0 || stream.over == size * runs_) return;
  const ir::ProgramOperation& next = *stream.operations[stream.over % size];
  if (next.kind != ProgramKind::wait && next.kind != ProgramKind::wait_event) return;
  StreamOperation operation;
  operation.source = &next;
  operation.run = stream.over / size + 1;
  slice(operation, Kind::wait, wait_name(next), context_.text("which did not come"), end);
}

// A unit of a core is drawn as a stream is.
void TraceRecorder::executed(const CoreSpan& span) {
  core_begin_ = std::min(core_begin_, span.start);
  core_end_ = std::max(core_end_, span.end);
  if (!context_.draws) return;
  std::vector<TraceStream>& streams = context_.trace.streams;
  auto stream = std::find_if(streams.begin(), streams.end(),
                             [&](const TraceStream& each) { return each.name == span.unit; });
  if (stream == streams.end()) stream = streams.insert(streams.end(), {span.unit, 0, {}});
  TraceSlice slice;
  const ir::OpInfo& record = ir::info(span.operation->op);
  slice.kind = record.family == ir::Family::core_copy ? Kind::memory : Kind::compute;
  slice.start = span.start;
  slice.end = span.busy_until;
  slice.name = context_.text(std::string(record.name));
  slice.detail = context_.text(fmt::format("over {} cycles later", span.end - span.busy_until));
  slice.iteration = context_.text(fmt::format("block {}", span.block));
  slice.where = span.operation->where;
  stream->slices.push_back(slice);
}

void TraceRecorder::end(const std::vector<Fault>& faults) {
  Trace& trace = context_.trace;
  for (const auto& own : launches_) own->finish_cut_short();
  // The operation of a stream that a fault cut short.
  if (const StreamOperation* const operation = current_stream_) {
    const StreamState& stream = state_of(*operation);
    stream_cut_short_ =
        TraceMark{0, 0, -1, operation->source->stream, stream.clock, operation->source->where};
    slice(*operation, Kind::memory, "cut short", 0, stream.clock + kStreamOperation);
  }
  for (const auto& own : launches_) trace.end = std::max(trace.end, own->end());
  for (const StreamState& stream : streams_) trace.end = std::max(trace.end, stream.clock);
  const std::int64_t open = trace.end + trace.end / 20 + 1;
  for (const auto& own : launches_) own->end_open_waits(open);
  const bool blocked = std::any_of(faults.begin(), faults.end(),
                                   [](const Fault& fault) { return fault.kind == "deadlock"; });
  for (std::size_t i = 0; i < streams_.size() && blocked; ++i) end_open_wait(i, open);
  for (TraceCta& cta : trace.ctas) {
    if (cta.end == cta.start) cta.end = trace.end;
    for (const TraceLane& lane : cta.lanes) {
      if (!lane.slices.empty()) trace.end = std::max(trace.end, lane.slices.back().end);
    }
    const auto earlier = [](const auto& a, const auto& b) { return a.start < b.start; };
    std::sort(cta.products.begin(), cta.products.end(), earlier);
    std::stable_sort(cta.flips.begin(), cta.flips.end(),
                     [](const TraceFlip& a, const TraceFlip& b) { return a.time < b.time; });
  }
  for (const TraceStream& stream : trace.streams) {
    if (!stream.slices.empty()) trace.end = std::max(trace.end, stream.slices.back().end);
  }
  for (const Fault& fault : faults) trace.faults.push_back(locate(fault));
}

}  // namespace tilewright::simulator
