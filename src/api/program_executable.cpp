#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/build_options.h"
#include "api/caller_runs.h"
#include "api/caller_tensors.h"
#include "api/program_ranks.h"
#include "api/program_steps.h"
#include "api/run_numbers.h"
#include "api/shared_tensors.h"
#include "api/word_waits.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/dump.h"
#include "compiler/target.h"
#include "ir/program_exchanges.h"
#include "runtime/device.h"
#include "support/diagnostic.h"
#include "support/held.h"
#include "support/parallel.h"
#include "tilewright/program.h"

namespace tilewright {

using Kind = ir::ProgramOperation::Kind;

struct ProgramExecutable::State {
  ir::Program recorded;
  ir::Kernel signature;  // what its callers see
  compiler::Target target;
  CompileOptions options;
  std::unique_ptr<CallerRuns> caller;  // once somebody calls
  std::mutex mutex;                    // of that, and of runs on callers' tensors
  std::vector<ir::Kernel> machine;
  std::optional<ir::Program> program;   // bound to the sizes of the memory that is loaded
  std::unique_ptr<ProgramRanks> ranks;  // null: on another target than cuda
  // Of each rank that this process runs; so are the streams and events, by their numbers.
  ProgramSteps::Kernels kernels;
  WordWaits waits;
  std::map<int, runtime::Stream> streams;
  std::map<int, runtime::Event> events;  // of the program
  std::map<int, runtime::Event> ends;    // of each stream's run
  std::map<int, runtime::Event> begins;  // of each rank's run on a caller's stream
  std::unique_ptr<ProgramWatch> watch;   // of its runs, if anybody asks
  std::unique_ptr<ProgramSteps> steps;   // of `program`, on the memory that it has
  std::int64_t runs = 0;                 // since load, or with a caller's sizes
  DimValues sizes;
  // A caller's tensors, of each rank each buffer's, and their sizes; empty: memory of its own.
  std::vector<std::vector<std::byte*>> passed;
  std::map<int, runtime::Stream> passed_streams;  // of the latest run, by rank
  std::optional<ir::Kernel> of_rank;              // once a run in a group has asked for it
  std::vector<std::int64_t> passed_sizes;
  std::unique_ptr<CountKernels> count_kernels;  // of runs on callers' tensors, once asked for
  std::unique_ptr<RunNumbers> numbers;          // of `program`, with these

  std::byte* at(int buffer, int rank) const {
    // What its kernels own comes behind the buffers that the program has as recorded.
    if (!passed.empty() && static_cast<std::size_t>(buffer) < recorded.buffers.size()) {
      std::byte* const own = passed.at(static_cast<std::size_t>(rank)).at(buffer);
      if (own != nullptr) return own;
    }
    return ranks->at(buffer, rank);
  }
  const CallerRuns& callers();
  void build();
  void make_streams();
  void run_on(std::unique_ptr<ProgramRanks> made);
  void bind(const DimValues& sizes, const ir::ReadBuffer& contents = {});
  void bind_passed(const Arguments& arguments);
  void pass(const Arguments& arguments);
  runtime::Stream caller_stream(int rank, const std::vector<void*>& callers) const;
  void run_passed(const Arguments& arguments, const std::vector<void*>& callers);
  void require_memory();
  void require_devices() const;
  void clear(const ir::Program& of) const;  // all memory of its buffers to zeros
  // Whether the stream's rank has another one.
  bool shares_rank(int stream) const;
  // Whether a stream of the program may be the caller's.
  bool runs_on(const runtime::Stream& callers) const;
  // While nothing is queued: who waits for a launch that fails then would wait forever.
  void prepare_steps();
  void queue_run(std::int64_t run) const;
  void queue_steps(std::int64_t run, const ProgramRanks::Streams& queues) const;
  void queue_run(std::int64_t run, const std::vector<void*>& callers, bool is_captured);
  void synchronize();
  bool is_in_group() const { return ranks->group() != nullptr; }
  void share_places(std::vector<std::vector<std::byte*>>& places,
                    const std::vector<TensorArgument>& own) const;
  // Whether the streams are captured in a CUDA graph, and the run can be.
  bool is_captured(const Arguments& arguments, const std::vector<void*>& callers) const;
  // What the buffers that are passed hold in each rank of this process, by `move`.
  template <typename Move>
  void for_each_tensor(const Move& move) const;
};

const CallerRuns& ProgramExecutable::State::callers() {
  const std::lock_guard lock(mutex);
  if (!caller) {
    std::vector<const compiler::CompiledKernel*> compiled;
    if (!kernels.empty()) {
      for (const auto& kernel : kernels.begin()->second) compiled.push_back(kernel.get());
    }
    caller = std::make_unique<CallerRuns>(recorded, target, build_options(options).machine,
                                          simulated_machine(options, recorded.where),
                                          std::move(compiled));
  }
  return *caller;
}

void ProgramExecutable::State::build() {
  // The assembler takes seconds for a large one.
  std::vector<std::optional<compiler::BuiltKernel>> built(recorded.kernels.size());
  in_parallel(thread_count(0), built.size(), [&](std::size_t i, unsigned) {
    built[i] = compiler::build_kernel(*recorded.kernels[i], target.arch, build_options(options));
  });
  for (const auto& each : built) {
    machine.push_back(each->program.machine);
    if (!ranks) continue;
    for (const int rank : ranks->own()) {
      kernels[rank].push_back(std::make_unique<compiler::CompiledKernel>(each->program, each->build,
                                                                         ranks->device(rank)));
    }
  }
  if (ranks) waits.build(recorded, *ranks, build_options(options));
}

void ProgramExecutable::State::run_on(std::unique_ptr<ProgramRanks> made) {
  ranks = std::move(made);
  build();
  make_streams();
}

void ProgramExecutable::State::make_streams() {
  constexpr auto kUntimed = runtime::Event::Timing::off;
  for (std::size_t i = 0; i < recorded.streams.size(); ++i) {
    const int rank = recorded.streams[i].rank;
    if (!ranks->runs(rank)) continue;
    streams.emplace(i, ranks->device(rank));
    ends.emplace(std::piecewise_construct, std::tuple(i), std::tie(ranks->device(rank), kUntimed));
    begins.try_emplace(rank, ranks->device(rank), kUntimed);
  }
}

// Memory of these sizes, and launches that are known to fit it.
void ProgramExecutable::State::bind(const DimValues& sizes, const ir::ReadBuffer& contents) {
  const runtime::Device& device = ranks->device(ranks->own().front());
  ir::Program made = ir::bind_program(recorded, sizes, device.info().multiprocessors, contents);
  ir::add_owned(made, machine);
  passed.clear();
  passed_sizes.clear();
  steps.reset();
  numbers.reset();
  program.reset();
  ranks->allocate(made);
  program = std::move(made);
  clear(*program);
  prepare_steps();
  ranks->meet("the memory");
}

namespace {

ProgramRanks::Streams streams_of(const std::map<int, runtime::Stream>& streams) {
  ProgramRanks::Streams all;
  for (const auto& [number, stream] : streams) all.push_back(&stream);
  return all;
}

}  // namespace

// The same beside a caller's tensors, of which the memory is there. No run is then under way: the
// memory that it has is given back.
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

// All runs on callers' streams have ended.
void ProgramExecutable::State::synchronize() {
  if (numbers && !passed_streams.empty()) return ranks->rest(streams_of(passed_streams));
  if (is_in_group() && runs > 0 && !passed.empty()) {
    ranks->finish(runs, streams_of(passed_streams), watch.get());
  }
  for (const auto& [number, end] : ends) end.synchronize();
}

// The tensors of a caller's run; memory beside them where their sizes are new.
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

// Where the other ranks have what they pass and this one reaches, or the other way round.
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

void ProgramExecutable::State::require_memory() {
  require_devices();
  if (program && passed.empty()) return;
  if (recorded.dims.empty()) return bind({});
  Diagnostic(recorded.where, fmt::format("program {}: its dims have no values", recorded.name))
      .fix("load a ProgramMemory of the sizes to run")
      .raise();
}

void ProgramExecutable::State::require_devices() const {
  if (ranks) return ranks->require_usable();
  Diagnostic(recorded.where, fmt::format("program {}: target {}, and memory of a program's own is "
                                         "on cuda",
                                         recorded.name, target.name))
      .fix("cuda; or run it on tensors, or simulate() it, which need no GPU")
      .raise();
}

void ProgramExecutable::State::clear(const ir::Program& of) const {
  for (const int rank : ranks->own()) {
    const runtime::Stream stream(ranks->device(rank));
    for (std::size_t i = 0; i < of.buffers.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(of.buffers[i].bytes());
      runtime::zero_rows_async(ranks->at(static_cast<int>(i), rank), 0, bytes, 1, stream);
    }
    stream.synchronize();
  }
}

void ProgramExecutable::State::prepare_steps() {
  for (const ir::ProgramOperation& operation : program->operations) {
    const int rank = program->streams[operation.stream].rank;
    if (operation.kind != Kind::record || !ranks->runs(rank)) continue;
    events.try_emplace(operation.event, ranks->device(rank), runtime::Event::Timing::off);
  }
  if (const auto seconds = compiler::watch_seconds()) {
    watch = std::make_unique<ProgramWatch>(*program, *ranks, *seconds);
  }
  steps = std::make_unique<ProgramSteps>(
      *program, *ranks, kernels, waits, events,
      [this](int buffer, int rank) { return this->at(buffer, rank); }, watch.get(), numbers.get());
}

bool ProgramExecutable::State::shares_rank(int stream) const {
  const int rank = recorded.streams[static_cast<std::size_t>(stream)].rank;
  return std::count_if(recorded.streams.begin(), recorded.streams.end(),
                       [rank](const ir::ProgramStream& each) { return each.rank == rank; }) > 1;
}

void ProgramExecutable::State::queue_steps(std::int64_t run,
                                           const ProgramRanks::Streams& queues) const {
  try {
    steps->queue(run, queues);
  } catch (const Error& error) {
    ProgramRanks::Streams own;
    for (const runtime::Stream* each : queues) {
      if (each != nullptr) own.push_back(each);
    }
    ranks->give_up(error, own);
    throw;
  }
}

// A rank's streams begin behind the ends of all of them in the run before.
void ProgramExecutable::State::queue_run(std::int64_t run) const {
  for (const auto& [i, stream] : streams) {
    if (run == 1) break;
    for (const auto& [j, end] : ends) {
      const bool same_rank = program->streams[i].rank == program->streams[j].rank;
      if (i != j && same_rank) stream.wait(end);
    }
  }
  std::vector<const runtime::Stream*> queues(program->streams.size());
  for (const auto& [i, stream] : streams) queues[static_cast<std::size_t>(i)] = &stream;
  queue_steps(run, queues);
  // Nobody waits for the end of a rank's only stream.
  for (const auto& [i, stream] : streams) {
    if (shares_rank(i)) ends.at(i).record(stream);
  }
  ranks->note_queued(run, streams_of(streams));
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

template <typename Move>
void ProgramExecutable::State::for_each_tensor(const Move& move) const {
  for (const int rank : ranks->own()) {
    const runtime::Stream stream(ranks->device(rank));
    for (std::size_t i = 0; i < program->buffers.size(); ++i) {
      if (!program->buffers[i].is_passed()) continue;
      move(rank, i, ranks->at(static_cast<int>(i), rank), stream);
    }
    stream.synchronize();
  }
}

ProgramExecutable::ProgramExecutable(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProgramExecutable::~ProgramExecutable() = default;
ProgramExecutable::ProgramExecutable(ProgramExecutable&&) noexcept = default;
ProgramExecutable& ProgramExecutable::operator=(ProgramExecutable&&) noexcept = default;

void ProgramExecutable::run(const std::vector<TensorRef>& tensors,
                            const std::vector<double>& scalars, void* stream) const {
  held(state_, "ProgramExecutable").callers().run(tensors, scalars, stream);
}

void ProgramExecutable::prepare(const std::vector<TensorRef>& tensors,
                                const std::vector<double>& scalars, void* stream) const {
  held(state_, "ProgramExecutable").callers().prepare(tensors, scalars, stream);
}

void ProgramExecutable::run_on_gpus(const std::vector<TensorRef>& tensors,
                                    const std::vector<void*>& streams,
                                    const std::vector<double>& scalars) {
  State& state = held(state_, "ProgramExecutable");
  state.require_devices();
  const auto fail = [&](const std::string& what, const std::string& fix) {
    Diagnostic(state.recorded.where, fmt::format("program {}: {}", state.recorded.name, what))
        .fix(fix)
        .raise();
  };
  if (state.is_in_group()) {
    fail("other processes run some of its ranks",
         "run_in_group(), which takes the tensors of this process's rank");
  }
  if (!streams.empty() && streams.size() != state.ranks->own().size()) {
    fail(fmt::format("{} streams for {}", streams.size(), ir::ranks_text(state.recorded.ranks)),
         "pass one for each rank, or none");
  }
  const std::lock_guard lock(state.mutex);
  const Arguments arguments = compiler::make_arguments(state.signature, tensors, scalars);
  ir::check_memory(state.signature, arguments.tensors);
  state.run_passed(arguments, streams);
}

void ProgramExecutable::run_in_group(const std::vector<TensorRef>& tensors, void* stream,
                                     const std::vector<double>& scalars) {
  State& state = held(state_, "ProgramExecutable");
  state.require_devices();
  if (!state.is_in_group()) {
    Diagnostic(state.recorded.where,
               fmt::format("program {}: this process runs all its ranks", state.recorded.name))
        .fix("run_on_gpus(), which takes the tensors of all of them; or compile it with a Group")
        .raise();
  }
  const std::lock_guard lock(state.mutex);
  if (!state.of_rank) state.of_rank = signature_of_rank(state.recorded);
  const ir::Kernel& signature = *state.of_rank;
  require_count(state.recorded, signature, tensors.size());
  const Arguments own = compiler::make_arguments(signature, tensors, scalars);
  ir::check_memory(signature, own.tensors);
  // The others' lie alike: their sizes are known, and their memory is not touched.
  Arguments all = own;
  for (int rank = 1; rank < state.recorded.ranks; ++rank) {
    all.tensors.insert(all.tensors.end(), own.tensors.begin(), own.tensors.end());
  }
  std::vector<void*> streams(static_cast<std::size_t>(state.recorded.ranks));
  streams[static_cast<std::size_t>(state.ranks->own().front())] = stream;
  state.run_passed(all, streams);
}

void ProgramExecutable::count_on_gpus() {
  State& state = held(state_, "ProgramExecutable");
  state.require_devices();
  const std::lock_guard lock(state.mutex);
  if (state.count_kernels) return;
  state.count_kernels =
      std::make_unique<CountKernels>(state.recorded, *state.ranks, build_options(state.options));
}

void ProgramExecutable::synchronize() {
  State& state = held(state_, "ProgramExecutable");
  state.require_devices();
  const std::lock_guard lock(state.mutex);
  state.synchronize();
}

void ProgramExecutable::load(const ProgramMemory& memory) {
  State& state = held(state_, "ProgramExecutable");
  state.require_devices();
  const bool reads = !state.recorded.reads.empty();
  if (!state.program || !state.passed.empty() || reads || memory.sizes() != state.sizes) {
    state.bind(memory.sizes(), ir::contents_of(memory.tensors.front()));
    state.sizes = memory.sizes();
  }
  ir::check_tensors(*state.program, memory.tensors);
  // No rank still runs, and none runs before all have loaded.
  state.ranks->meet("the beginning of load");
  state.clear(*state.program);
  state.for_each_tensor([&](int rank, std::size_t i, std::byte* at, const runtime::Stream& stream) {
    const HostTensor& tensor = memory.tensors[static_cast<std::size_t>(rank)][i];
    runtime::copy_async(at, tensor.data(), tensor.size_bytes(), stream);
  });
  state.ranks->meet("the end of load");
  state.runs = 0;
}

void ProgramExecutable::run(int runs) {
  State& state = held(state_, "ProgramExecutable");
  if (runs == 0) {
    Diagnostic(state.recorded.where,
               fmt::format("program {}: 0 runs, which run({{}}) asks for too", state.recorded.name))
        .fix("pass the tensors of a caller's run; of loaded memory ask for one run or more")
        .raise();
  }
  ir::check_count(state.recorded, "runs", runs);
  state.require_memory();
  for (int i = 0; i < runs; ++i) state.queue_run(++state.runs);
  state.ranks->finish(state.runs, streams_of(state.streams), state.watch.get());
}

void ProgramExecutable::store(ProgramMemory& memory) const {
  State& state = held(state_, "ProgramExecutable");
  state.require_memory();
  ir::check_tensors(*state.program, memory.tensors);
  state.for_each_tensor([&](int rank, std::size_t i, std::byte* at, const runtime::Stream& stream) {
    HostTensor& tensor = memory.tensors[static_cast<std::size_t>(rank)][i];
    runtime::copy_async(tensor.data(), at, tensor.size_bytes(), stream);
  });
}

std::unique_ptr<ProgramExecutable::State> ProgramExecutable::recorded_state(
    const Program& program, std::string_view target, const CompileOptions& options) {
  auto state = std::make_unique<State>();
  state->target = compiler::parse_target(target, options.device);
  state->options = options;
  state->recorded = program.finish();
  ir::check_meetings(state->recorded);
  state->signature = ir::signature_of(state->recorded);
  compiler::dump_program(state->recorded);
  return state;
}

ProgramExecutable compile(const Program& program, std::string_view target,
                          const CompileOptions& options) {
  auto state = ProgramExecutable::recorded_state(program, target, options);
  switch (state->target.kind) {
    case compiler::Target::Kind::interpreter:
    case compiler::Target::Kind::cpu:
    case compiler::Target::Kind::simulator:
    case compiler::Target::Kind::passes:
      state->callers();
      break;
    case compiler::Target::Kind::architecture:
      state->build();
      break;
    case compiler::Target::Kind::cuda:
      state->run_on(ranks_of_this_process(state->recorded, options.device));
      break;
  }
  return ProgramExecutable(std::move(state));
}

ProgramExecutable compile(const Program& program, std::string_view target, const Group& group,
                          const CompileOptions& options) {
  auto state = ProgramExecutable::recorded_state(program, target, options);
  if (state->target.kind != compiler::Target::Kind::cuda) {
    Diagnostic(state->recorded.where,
               fmt::format("program {}: target {}, and a group runs programs on cuda",
                           state->recorded.name, state->target.name))
        .fix("cuda; or compile without a group")
        .raise();
  }
  state->run_on(rank_of_group(state->recorded, group, options.device));
  return ProgramExecutable(std::move(state));
}

}  // namespace tilewright
