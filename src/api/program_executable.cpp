#include <fmt/format.h>

#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/build_options.h"
#include "api/caller_runs.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/dump.h"
#include "compiler/target.h"
#include "ir/program.h"
#include "runtime/device.h"
#include "runtime/peers.h"
#include "support/diagnostic.h"
#include "support/held.h"
#include "tilewright/program.h"

namespace tilewright {

using Kind = ir::ProgramOperation::Kind;

// Ranks are GPUs 0, 1, ... of this process.
struct ProgramExecutable::State {
  ir::Program recorded;
  compiler::Target target;
  CompileOptions options;
  std::unique_ptr<CallerRuns> caller;  // once somebody calls
  std::mutex mutex;                    // of that, and of runs on callers' tensors
  std::vector<ir::Kernel> machine;
  std::optional<ir::Program> program;  // bound to the sizes of the memory that is loaded
  std::vector<const runtime::Device*> devices;
  std::vector<std::vector<std::unique_ptr<compiler::CompiledKernel>>> kernels;  // of each rank
  std::vector<std::vector<runtime::DeviceBuffer>> buffers;                      // of each rank
  std::vector<runtime::Stream> streams;
  std::vector<runtime::Event> events;  // of the program
  std::vector<runtime::Event> ends;    // of each stream's run
  std::vector<runtime::Event> begins;  // of each rank's run on a caller's stream
  std::int64_t runs = 0;               // since load, or with a caller's sizes
  DimValues sizes;
  // A caller's tensors, of each rank each buffer's, and their sizes; empty: memory of its own.
  std::vector<std::vector<std::byte*>> passed;
  std::vector<std::int64_t> passed_sizes;

  std::byte* address(int buffer, int rank) const {
    if (!passed.empty() && passed[rank][buffer]) return passed[rank][buffer];
    return static_cast<std::byte*>(buffers[rank][buffer].data());
  }
  const CallerRuns& callers();
  void find_devices();
  void build();
  void bind(const DimValues& sizes);
  void allocate(const ir::Program& bound, bool with_passed);
  void pass(const Arguments& arguments);
  void require_memory();
  void require_devices() const;
  void clear() const;  // all memory to zeros
  void check_launches() const;
  void queue(const ir::ProgramOperation& operation, const runtime::Stream& stream,
             std::int64_t run) const;
  void queue_run(std::int64_t run) const;
  void queue_run(std::int64_t run, const std::vector<void*>& callers) const;
};

const CallerRuns& ProgramExecutable::State::callers() {
  const std::lock_guard lock(mutex);
  if (!caller) {
    std::vector<const compiler::CompiledKernel*> compiled;
    if (!kernels.empty()) {
      for (const auto& kernel : kernels.front()) compiled.push_back(kernel.get());
    }
    caller = std::make_unique<CallerRuns>(recorded, target, build_options(options).machine,
                                          std::move(compiled));
  }
  return *caller;
}

void ProgramExecutable::State::find_devices() {
  if (runtime::Device::count() < recorded.ranks) {
    Diagnostic(recorded.where,
               fmt::format("program {} has {} ranks, and there are {} GPUs", recorded.name,
                           recorded.ranks, runtime::Device::count()),
               ErrorKind::unavailable)
        .fix("a machine with a GPU for each rank, or simulate() the program, which needs none")
        .raise();
  }
  for (int rank = 0; rank < recorded.ranks; ++rank) {
    devices.push_back(&runtime::Device::get(recorded.ranks == 1 ? options.device : rank));
  }
  for (const runtime::Device* device : devices) {
    for (const runtime::Device* other : devices) runtime::reach_peer(*device, *other);
  }
}

void ProgramExecutable::State::build() {
  kernels.resize(devices.size());
  for (const auto& kernel : recorded.kernels) {
    const compiler::BuiltKernel built =
        compiler::build_kernel(*kernel, target.arch, build_options(options));
    machine.push_back(built.program.machine);
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      kernels[rank].push_back(
          std::make_unique<compiler::CompiledKernel>(built.program, built.build, *devices[rank]));
    }
  }
}

// Memory of these sizes, and launches that are known to fit it.
void ProgramExecutable::State::bind(const DimValues& sizes) {
  ir::Program made = ir::bind_program(recorded, sizes, devices.front()->info().multiprocessors);
  ir::add_owned(made, machine);
  passed.clear();
  passed_sizes.clear();
  allocate(made, /*with_passed=*/true);
  program = std::move(made);
  clear();
  check_launches();
}

void ProgramExecutable::State::allocate(const ir::Program& bound, bool with_passed) {
  program.reset();
  buffers.clear();
  for (int rank = 0; rank < bound.ranks; ++rank) {
    std::vector<runtime::DeviceBuffer>& own = buffers.emplace_back();
    for (std::size_t i = 0; i < bound.buffers.size(); ++i) {
      const bool is_own = with_passed || !bound.buffers[i].is_passed();
      own.emplace_back(*devices[rank],
                       is_own ? static_cast<std::size_t>(bound.buffers[i].bytes()) : 0,
                       name_of(bound, static_cast<int>(i), rank));
    }
  }
}

namespace {

// Of what a program is bound to.
std::vector<std::int64_t> sizes_of(const Arguments& arguments) {
  std::vector<std::int64_t> sizes;
  for (const TensorArgument& tensor : arguments.tensors) {
    sizes.push_back(static_cast<std::int64_t>(tensor.shape.size()));
    sizes.insert(sizes.end(), tensor.shape.begin(), tensor.shape.end());
    sizes.insert(sizes.end(), tensor.strides.begin(), tensor.strides.end());
  }
  for (const double scalar : arguments.scalars) {
    sizes.push_back(std::bit_cast<std::int64_t>(scalar));
  }
  return sizes;
}

}  // namespace

// The tensors of a caller's run; memory beside them where their sizes are new.
void ProgramExecutable::State::pass(const Arguments& arguments) {
  std::vector<std::int64_t> wanted = sizes_of(arguments);
  const bool is_new = !program || wanted != passed_sizes;
  if (is_new) {
    std::vector<ir::TensorShape> shapes;
    for (const TensorArgument& tensor : arguments.tensors) {
      shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
    }
    ir::Program made = ir::bind_program(recorded, shapes, devices.front()->info().multiprocessors,
                                        arguments.scalars);
    ir::add_owned(made, machine);
    for (const runtime::Event& end : ends) end.synchronize();
    allocate(made, /*with_passed=*/false);
    program = std::move(made);
    clear();
    runs = 0;
    passed_sizes = std::move(wanted);
  }
  ir::check_memory(ir::signature_of(recorded), arguments.tensors);
  std::vector<std::vector<std::byte*>> places;
  std::size_t next = 0;
  for (int rank = 0; rank < program->ranks; ++rank) {
    std::vector<std::byte*>& own = places.emplace_back();
    for (const ir::ProgramBuffer& buffer : program->buffers) {
      own.push_back(buffer.is_passed() ? arguments.tensors[next++].data : nullptr);
    }
  }
  if (!is_new && places == passed) return;
  passed = std::move(places);
  check_launches();
}

void ProgramExecutable::State::queue(const ir::ProgramOperation& operation,
                                     const runtime::Stream& stream, std::int64_t run) const {
  const auto at = [this](int buffer, int rank) { return address(buffer, rank); };
  const int rank = program->streams[operation.stream].rank;
  const std::int32_t value = ir::word_value(operation.value, run);
  switch (operation.kind) {
    case Kind::launch:
      return kernels[rank][operation.kernel]->launch(stream,
                                                     arguments_of(*program, operation, run, at));
    case Kind::copy:
      return ir::for_each_rows(
          argument_of(*program, operation.to, at), argument_of(*program, operation.from, at),
          [&](const ir::CopiedRows& copied) {
            runtime::copy_rows_async(copied.to, copied.to_pitch, copied.from, copied.from_pitch,
                                     copied.bytes, copied.rows, stream);
          });
    case Kind::zero: {
      const TensorArgument to = argument_of(*program, operation.to, at);
      return ir::for_each_rows(to, to, [&](const ir::CopiedRows& set) {
        runtime::zero_rows_async(set.to, set.to_pitch, set.bytes, set.rows, stream);
      });
    }
    case Kind::write:
      return runtime::write_word(stream, argument_of(*program, operation.to, at).data, value);
    case Kind::wait:
      return runtime::wait_word(stream, argument_of(*program, operation.to, at).data, value);
    case Kind::record:
      return events[operation.event].record(stream);
    case Kind::wait_event:
      return stream.wait(events[operation.event]);
  }
}

void ProgramExecutable::State::require_memory() {
  require_devices();
  if (program) return;
  if (recorded.dims.empty()) return bind({});
  Diagnostic(recorded.where, fmt::format("program {}: its dims have no values", recorded.name))
      .fix("load a ProgramMemory of the sizes to run")
      .raise();
}

void ProgramExecutable::State::require_devices() const {
  if (!devices.empty()) return;
  Diagnostic(recorded.where, fmt::format("program {}: target {}, and memory of a program's own is "
                                         "on cuda",
                                         recorded.name, target.name))
      .fix("cuda; or run it on tensors, or simulate() it, which need no GPU")
      .raise();
}

void ProgramExecutable::State::clear() const {
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const runtime::Stream stream(*devices[rank]);
    for (const runtime::DeviceBuffer& buffer : buffers[rank]) buffer.fill(0, stream);
    stream.synchronize();
  }
}

// While nothing is queued: who waits for a launch that fails then would wait forever.
void ProgramExecutable::State::check_launches() const {
  const auto at = [this](int buffer, int rank) { return address(buffer, rank); };
  for (const ir::ProgramOperation& operation : program->operations) {
    if (operation.kind != Kind::launch) continue;
    const int rank = program->streams[operation.stream].rank;
    kernels[rank][operation.kernel]->check(arguments_of(*program, operation, 1, at));
  }
}

// A rank's streams begin behind the ends of all of them in the run before.
void ProgramExecutable::State::queue_run(std::int64_t run) const {
  for (std::size_t i = 0; i < streams.size() && run > 1; ++i) {
    for (std::size_t j = 0; j < streams.size(); ++j) {
      const bool same_rank = program->streams[i].rank == program->streams[j].rank;
      if (i != j && same_rank) streams[i].wait(ends[j]);
    }
  }
  for (const ir::ProgramOperation& operation : program->operations) {
    queue(operation, streams[operation.stream], run);
  }
  for (std::size_t i = 0; i < streams.size(); ++i) ends[i].record(streams[i]);
}

// Each rank's first stream is the caller's. The others begin where that stands, and it goes on when
// they have ended.
void ProgramExecutable::State::queue_run(std::int64_t run,
                                         const std::vector<void*>& callers) const {
  std::vector<runtime::Stream> first;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    auto* const handle = callers.empty() ? nullptr : static_cast<CUstream_st*>(callers[rank]);
    first.push_back(runtime::Stream::borrow(*devices[rank], handle));
  }
  std::vector<const runtime::Stream*> queues;
  std::vector<bool> has_first(devices.size(), false), has_others(devices.size(), false);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const int rank = program->streams[i].rank;
    queues.push_back(has_first[rank] ? &streams[i] : &first[rank]);
    if (has_first[rank]) {
      if (!has_others[rank]) begins[rank].record(first[rank]);
      has_others[rank] = true;
      streams[i].wait(begins[rank]);
    }
    has_first[rank] = true;
  }
  for (const ir::ProgramOperation& operation : program->operations) {
    queue(operation, *queues[operation.stream], run);
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const int rank = program->streams[i].rank;
    ends[i].record(*queues[i]);
    if (queues[i] != &first[rank]) first[rank].wait(ends[i]);
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
  if (!streams.empty() && streams.size() != state.devices.size()) {
    Diagnostic(state.recorded.where,
               fmt::format("program {}: {} streams for {}", state.recorded.name, streams.size(),
                           ir::ranks_text(state.recorded.ranks)))
        .fix("pass one for each rank, or none")
        .raise();
  }
  const std::lock_guard lock(state.mutex);
  state.pass(compiler::make_arguments(ir::signature_of(state.recorded), tensors, scalars));
  state.queue_run(++state.runs, streams);
}

void ProgramExecutable::load(const ProgramMemory& memory) {
  State& state = held(state_, "ProgramExecutable");
  state.require_devices();
  if (!state.program || !state.passed.empty() || memory.sizes() != state.sizes) {
    state.bind(memory.sizes());
    state.sizes = memory.sizes();
  }
  ir::check_tensors(*state.program, memory.tensors);
  state.clear();
  for (std::size_t rank = 0; rank < state.devices.size(); ++rank) {
    const runtime::Stream stream(*state.devices[rank]);
    for (std::size_t i = 0; i < memory.tensors[rank].size(); ++i) {
      const HostTensor& tensor = memory.tensors[rank][i];
      if (state.program->buffers[i].is_passed())
        state.buffers[rank][i].upload(tensor.data(), tensor.size_bytes(), stream);
    }
    stream.synchronize();
  }
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
  for (const runtime::Stream& stream : state.streams) stream.synchronize();
}

void ProgramExecutable::store(ProgramMemory& memory) const {
  State& state = held(state_, "ProgramExecutable");
  state.require_memory();
  ir::check_tensors(*state.program, memory.tensors);
  for (std::size_t rank = 0; rank < state.devices.size(); ++rank) {
    const runtime::Stream stream(*state.devices[rank]);
    for (std::size_t i = 0; i < memory.tensors[rank].size(); ++i) {
      HostTensor& tensor = memory.tensors[rank][i];
      state.buffers[rank][i].download(tensor.data(), tensor.size_bytes(), stream);
    }
    stream.synchronize();
  }
}

ProgramExecutable compile(const Program& program, std::string_view target,
                          const CompileOptions& options) {
  auto state = std::make_unique<ProgramExecutable::State>();
  state->target = compiler::parse_target(target, options.device);
  state->options = options;
  state->recorded = program.finish();
  const ir::Program& recorded = state->recorded;
  compiler::dump_program(recorded);
  switch (state->target.kind) {
    case compiler::Target::Kind::interpreter:
    case compiler::Target::Kind::simulator:
    case compiler::Target::Kind::passes:
      state->callers();
      return ProgramExecutable(std::move(state));
    case compiler::Target::Kind::architecture:
      state->build();
      return ProgramExecutable(std::move(state));
    case compiler::Target::Kind::cuda:
      break;
  }
  state->find_devices();
  state->build();
  std::vector<int> rank_of_event(recorded.events);
  for (const ir::ProgramOperation& operation : recorded.operations) {
    if (operation.kind != Kind::record) continue;
    rank_of_event[operation.event] = recorded.streams[operation.stream].rank;
  }
  for (const int rank : rank_of_event) {
    state->events.emplace_back(*state->devices[rank], runtime::Event::Timing::off);
  }
  for (const runtime::Device* device : state->devices) {
    state->begins.emplace_back(*device, runtime::Event::Timing::off);
  }
  for (const ir::ProgramStream& stream : recorded.streams) {
    state->streams.emplace_back(*state->devices[stream.rank]);
    state->ends.emplace_back(*state->devices[stream.rank], runtime::Event::Timing::off);
  }
  return ProgramExecutable(std::move(state));
}

}  // namespace tilewright
