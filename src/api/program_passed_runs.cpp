#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "api/program_state.h"
#include "api/shared_tensors.h"
#include "support/diagnostic.h"

namespace tilewright {

using Kind = ir::ProgramOperation::Kind;

// Of the tensors the memory is there. No run is then under way: the memory that it has is given
// back.
void ProgramExecutable::State::bind_passed(const Arguments& arguments) {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  ir::Program made =
      ir::bind_program(recorded, shapes, ranks->device(ranks->own().front()).info().multiprocessors,
                       arguments.scalars);
  ir::add_owned(made, machine);
  synchronize();
  ir::Program own = made;
  for (ir::ProgramBuffer& buffer : own.buffers) {
    if (buffer.is_passed()) buffer.shape.assign(1, 0);
  }
  steps.reset();
  program.reset();
  ranks->allocate(own);
  program = std::move(made);
  passed.clear();
  clear(own);
  runs = 0;
  numbers.reset();
  ranks->meet("the memory");
}

void ProgramExecutable::State::pass(const Arguments& arguments) {
  std::vector<std::int64_t> wanted = sizes_of(arguments);
  const bool is_new = !program || wanted != passed_sizes;
  std::vector<std::vector<std::byte*>> places;
  std::size_t next = 0;
  for (int rank = 0; rank < recorded.ranks; ++rank) {
    std::vector<std::byte*>& own = places.emplace_back();
    for (const ir::ProgramBuffer& buffer : recorded.buffers) {
      own.push_back(buffer.is_passed() ? arguments.tensors[next++].data : nullptr);
      if (!ranks->runs(rank)) own.back() = nullptr;
    }
  }
  const auto is_same = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return at < passed.size() && passed[at] == places[at];
  };
  const std::vector<int> own = ranks->own();
  const bool is_changed = is_new || !std::all_of(own.begin(), own.end(), is_same);
  if (is_changed) {
    if (is_in_group()) share_places(places, arguments.tensors);
    if (is_new) bind_passed(arguments);
    passed_sizes = std::move(wanted);
    passed = std::move(places);
  }
  const bool begins_to_count = count_kernels && !numbers;
  if (begins_to_count) {
    numbers = std::make_unique<RunNumbers>(*program, *ranks, *count_kernels, runs);
  }
  if (is_changed || begins_to_count) prepare_steps();
}

void ProgramExecutable::State::share_places(std::vector<std::vector<std::byte*>>& places,
                                            const std::vector<TensorArgument>& own) const {
  const std::vector<ReachedBuffer> reached = reached_by_others(recorded);
  if (reached.empty()) return;
  for (const auto& [buffer, of_ranks] : shared_places(*ranks->group(), recorded, reached, own)) {
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      places[rank][static_cast<std::size_t>(buffer)] = of_ranks[rank];
    }
  }
}

runtime::Stream ProgramExecutable::State::caller_stream(int rank,
                                                        const std::vector<void*>& callers) const {
  auto* const handle = callers.empty() ? nullptr : static_cast<CUstream_st*>(callers[rank]);
  return runtime::Stream::borrow(ranks->device(rank), handle);
}

bool ProgramExecutable::State::is_captured(const Arguments& arguments,
                                           const std::vector<void*>& callers) const {
  const std::vector<int> own = ranks->own();
  const bool captured = std::any_of(own.begin(), own.end(), [&](int rank) {
    return caller_stream(rank, callers).is_capturing();
  });
  if (!captured) return false;
  const auto refuse = [&](const char* why, const char* fix) {
    Diagnostic(recorded.where,
               fmt::format("program {}: {}, and the stream is being captured in a CUDA graph",
                           recorded.name, why))
        .fix(fix)
        .raise();
  };
  // A graph brings the same numbers back, for which the ranks' words stand already.
  if (!count_kernels) refuse("its runs are counted by the host", "count_on_gpus() before");
  if (watch) refuse("its runs are watched", "leave TILEWRIGHT_WATCH unset");
  if (ranks->nodes() != nullptr) {
    refuse("it runs over nodes, whose sends the host waits for", "queue each run on the stream");
  }
  if (!numbers || sizes_of(arguments) != passed_sizes) {
    refuse("a first run of these sizes needs memory", "run it once with these sizes before");
  }
  return true;
}

// The driver takes copies between GPUs in the default stream one after the other, each behind all
// that both GPUs' default streams were given before. Two ranks that send to each other would take
// turns, or wait for each other forever.
bool ProgramExecutable::State::runs_on(const runtime::Stream& callers) const {
  const auto crosses = [](const ir::ProgramOperation& operation) {
    return operation.kind == Kind::copy && operation.to.rank != operation.from.rank;
  };
  return !callers.is_default() ||
         std::none_of(recorded.operations.begin(), recorded.operations.end(), crosses);
}

// Each rank's first stream is the caller's, where that will do. The others begin where it stands,
// and it goes on when they have ended.
void ProgramExecutable::State::queue_run(std::int64_t run, const std::vector<void*>& callers,
                                         bool is_captured) {
  passed_streams.clear();
  for (const int rank : ranks->own()) {
    const runtime::Stream& first =
        passed_streams.emplace(rank, caller_stream(rank, callers)).first->second;
    if (numbers) numbers->count(rank, first);
  }
  std::vector<const runtime::Stream*> queues(program->streams.size());
  std::set<int> seen, forked;  // ranks
  for (const auto& [number, stream] : streams) {
    const int rank = program->streams[number].rank;
    const runtime::Stream& first = passed_streams.at(rank);
    const bool is_callers = seen.insert(rank).second && runs_on(first);
    queues[static_cast<std::size_t>(number)] = is_callers ? &first : &stream;
    if (is_callers) continue;
    if (forked.insert(rank).second) begins.at(rank).record(first);
    stream.wait(begins.at(rank));
  }
  queue_steps(run, queues);
  for (const auto& [number, end] : ends) {
    const runtime::Stream& first = passed_streams.at(program->streams[number].rank);
    const runtime::Stream* const queue = queues[static_cast<std::size_t>(number)];
    if (queue == &first && numbers) continue;  // nobody waits for it
    end.record(*queue);
    if (queue != &first) first.wait(end);
  }
  if (!is_captured) ranks->note_queued(run, streams_of(passed_streams));
}

void ProgramExecutable::State::run_passed(const Arguments& arguments,
                                          const std::vector<void*>& callers) {
  const bool captured = is_captured(arguments, callers);
  pass(arguments);
  queue_run(runs + 1, callers, captured);
  ++runs;
}

}  // namespace tilewright
