#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/build_options.h"
#include "api/program_state.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/dump.h"
#include "ir/program_exchanges.h"
#include "support/diagnostic.h"
#include "support/held.h"
#include "support/parallel.h"

namespace tilewright {

const CallerRuns& ProgramExecutable::State::callers() {
  const std::lock_guard lock(mutex);
  if (!caller) {
    std::vector<const compiler::CompiledKernel*> compiled;
    if (!kernels.empty()) {
      for (const auto& kernel : kernels.begin()->second) compiled.push_back(kernel.get());
    }
    caller = std::make_unique<CallerRuns>(recorded, target, build_options(options).machine,
                                          simulated_machine(options, recorded.where),
                                          std::move(compiled),
                                          ranks ? &ranks->device(ranks->own().front()) : nullptr);
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

// All runs on callers' streams have ended.
void ProgramExecutable::State::synchronize() {
  if (numbers && !passed_streams.empty()) return ranks->rest(streams_of(passed_streams));
  if (is_in_group() && runs > 0 && !passed.empty()) {
    ranks->finish(runs, streams_of(passed_streams), watch.get());
  }
  for (const auto& [number, end] : ends) end.synchronize();
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
    if (operation.kind != ir::ProgramOperation::Kind::record || !ranks->runs(rank)) continue;
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
