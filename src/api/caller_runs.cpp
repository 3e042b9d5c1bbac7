#include "api/caller_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "check/pass_check.h"
#include "compiler/cpu_kernel.h"
#include "compiler/host_program.h"
#include "compiler/launch_key.h"
#include "compiler/launch_plan.h"
#include "compiler/simulation.h"
#include "compiler/written_tensors.h"
#include "compiler/zeroed_buffers.h"
#include "cpu/pool.h"
#include "library/program_simulation.h"
#include "simulator/interpreter.h"
#include "simulator/machine/streams.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using ir::ProgramOperation;
using ProgramKind = ProgramOperation::Kind;
using TargetKind = compiler::Target::Kind;

// Of each buffer of scratch in the stream's memory.
constexpr std::size_t kScratchAlignment = 256;
// What is set to zero with others, long before its use. More bytes take so long that a call of
// their own costs nothing beside, and then they are still in L2 for who comes behind.
constexpr std::size_t kZeroedTogether = 16 << 20;

std::size_t bytes_of(const ir::ProgramBuffer& buffer) {
  const auto bytes = static_cast<std::size_t>(buffer.bytes());
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

std::size_t tensors_passed(const ir::Kernel& kernel) {
  return static_cast<std::size_t>(
      std::count_if(kernel.parameters.begin(), kernel.parameters.end(),
                    [](const auto& each) { return each.is_tensor() && !each.is_owned(); }));
}

[[noreturn]] void refuse(const ir::Program& program, SourceLocation where, const std::string& what,
                         const std::string& fix) {
  Diagnostic(where, fmt::format("program {} on a caller's tensors: {}", program.name, what))
      .fix(fix)
      .raise();
}

// What a caller's run may not depend on: other GPUs, other streams, and how often it has run. On
// the host each run has new streams and signals, and its number is 1.
void check_callable(const ir::Program& program, const compiler::Target& target) {
  constexpr const char* kRanks = "load a ProgramMemory, run and store it: that is for all programs";
  const bool on_gpus = target.kind == TargetKind::cuda || target.kind == TargetKind::architecture;
  if (on_gpus && program.ranks > 1) {
    refuse(program, program.where, "it has " + ir::ranks_text(program.ranks),
           "run_on_gpus() takes the tensors of all of them");
  }
  if (on_gpus && program.streams.size() > 1) {
    refuse(program, program.streams[1].where, "it has a second stream, and a caller gives one",
           "queue all of it on one stream");
  }
  for (const ir::ProgramBuffer& buffer : program.buffers) {
    if (on_gpus && buffer.kind == ir::ProgramBuffer::Kind::signals) {
      refuse(program, buffer.where, "the signals " + buffer.name + " count its runs", kRanks);
    }
  }
  for (const ir::ProgramOperation& operation : program.operations) {
    for (const RunNumber& scalar : operation.scalars) {
      if (scalar.per_run == 0) continue;
      refuse(program, operation.where, "a scalar depends on the number of the run",
             "make it a scalar of the program, which each run is given");
    }
  }
}

void check_outputs_are_written(const ir::Program& program) {
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const ir::ProgramBuffer& buffer = program.buffers[i];
    if (buffer.kind != ir::ProgramBuffer::Kind::out) continue;
    const bool is_written =
        std::any_of(program.operations.begin(), program.operations.end(),
                    [&](const auto& operation) { return writes(program, operation, i); });
    if (is_written) continue;
    Diagnostic(buffer.where,
               fmt::format("program {}: nothing writes the output {}", program.name, buffer.name))
        .token(buffer.name)
        .fix("launch a kernel that stores to it, or leave it out")
        .raise();
  }
}

}  // namespace

// Where each buffer lies in the stream's memory, whose first `zeroed` bytes a run sets to zero
// before anything else, instead of the operations `zeroed_before`.
struct CallerRuns::ScratchPlaces {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0, zeroed = 0;
  std::set<const ProgramOperation*> zeroed_before;
};

// What one run queues, in order.
struct CallerRuns::Prepared {
  struct Step {
    const compiler::CompiledKernel* kernel = nullptr;  // null: zeros, or a copy
    std::vector<TensorRef> tensors;
    std::vector<double> scalars;
    bool zeros = false;
    std::vector<ir::CopiedRows> rows;
  };
  std::vector<std::int64_t> key;
  std::vector<Step> steps;
};

CallerRuns::CallerRuns(const ir::Program& program, const compiler::Target& target,
                       const compiler::MachineOptions& options,
                       const simulator::MachineOptions& simulated,
                       std::vector<const compiler::CompiledKernel*> kernels,
                       const runtime::Device* device)
    : program_(program),
      signature_(signature_of(program)),
      target_(target),
      options_(options),
      simulated_(simulated),
      compiled_(std::move(kernels)),
      device_(device),
      is_scratch_(program.buffers.size(), false) {
  check_callable(program_, target_);
  check_outputs_are_written(program_);
  if (target.kind == TargetKind::simulator) {
    forms_ = library::machine_forms(program_, target.arch, options);
  }
  for (const auto& kernel : program_.kernels) {
    if (target.kind != TargetKind::interpreter || kernel->form == ir::Form::tile) continue;
    refuse(program_, kernel->where,
           "kernel " + kernel->name +
               " is written at the explicit level, and the interpreter runs the tile level",
           "interpret a program of the tile-level kernels, or simulate this one");
  }
  if (target.kind == TargetKind::cpu) {
    for (const auto& kernel : program_.kernels) {
      native_.push_back(compiler::compile_for_cpu(*kernel, {options_.numerics, options_.schedule}));
    }
  }
  // Compiled kernels have memory of their own for what no caller passes to them.
  for (const ir::ProgramOperation& operation : program_.operations) {
    const auto mark = [&](const ir::ProgramPart& part) {
      is_scratch_[part.buffer] = !program_.buffers[part.buffer].is_passed();
    };
    if (operation.kind == ProgramKind::launch) {
      const std::size_t passed = tensors_passed(*program_.kernels[operation.kernel]);
      for (std::size_t i = 0; i < passed; ++i) mark(operation.tensors[i]);
    } else if (operation.kind == ProgramKind::copy || operation.kind == ProgramKind::zero) {
      mark(operation.to);
      if (operation.kind == ProgramKind::copy) mark(operation.from);
    }
  }
}

CallerRuns::~CallerRuns() = default;

void CallerRuns::run(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
                     void* stream) const {
  if (target_.kind == TargetKind::architecture) {
    Diagnostic(program_.where,
               fmt::format("program {} is built for {}, which is not tied to a GPU of this machine",
                           program_.name, target_.name),
               ErrorKind::unavailable)
        .fix("compile for cuda, the GPU that is here")
        .raise();
  }
  if (target_.kind != TargetKind::cuda) return run_on_host(tensors, scalars);
  const runtime::Stream queue =
      runtime::Stream::borrow(*device_, static_cast<CUstream_st*>(stream));
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const Prepared> prepared = this->prepared(queue, tensors, scalars);
  for (const Prepared::Step& step : prepared->steps) {
    if (step.kernel) step.kernel->launch(queue, step.tensors, step.scalars);
    for (const ir::CopiedRows& rows : step.rows) {
      if (step.zeros) {
        runtime::zero_rows_async(rows.to, rows.to_pitch, rows.bytes, rows.rows, queue);
      } else {
        runtime::copy_rows_async(rows.to, rows.to_pitch, rows.from, rows.from_pitch, rows.bytes,
                                 rows.rows, queue);
      }
    }
  }
}

void CallerRuns::prepare(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
                         void* stream) const {
  if (target_.kind != TargetKind::cuda) return;
  const runtime::Stream queue =
      runtime::Stream::borrow(*device_, static_cast<CUstream_st*>(stream));
  const std::lock_guard lock(mutex_);
  for (const Prepared::Step& step : prepared(queue, tensors, scalars)->steps) {
    if (step.kernel) step.kernel->prepare(queue, step.tensors, step.scalars);
  }
}

ir::Program CallerRuns::bound(const Arguments& arguments, std::int64_t multiprocessors,
                              const ir::ReadBuffer& contents) const {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  ir::check_memory(signature_, arguments.tensors);
  ir::Program bound =
      bind_program(program_, shapes, multiprocessors, arguments.scalars, {}, contents);
  return bound;
}

void CallerRuns::run_on_host(const std::vector<TensorRef>& tensors,
                             const std::vector<double>& scalars) const {
  const Arguments arguments = compiler::make_arguments(signature_, tensors, scalars);
  simulator::MachineOptions machine = simulated_;
  // CTAs of ranks wait for those of others: each has its place, as on their GPUs.
  if (program_.ranks > 1) machine.resident = machine.multiprocessors;
  ir::Program program =
      bound(arguments, machine.multiprocessors, ir::contents_of(program_, arguments.tensors));
  if (target_.kind == TargetKind::simulator) {
    // Each list of forms on what the tensors hold now; the first one's results stay.
    const compiler::WrittenTensors written(signature_, arguments);
    for (auto forms = forms_.rbegin(); forms != forms_.rend(); ++forms) {
      written.restore();
      ir::Program own = program;
      ir::add_owned(own, *forms);
      const compiler::HostMemory memory(own, arguments);
      const auto address = [&](int buffer, int rank) { return memory.at(buffer, rank); };
      for (const ir::ProgramOperation& operation : own.operations) {
        if (operation.kind != ProgramKind::launch) continue;
        compiler::check_tensor_maps((*forms)[operation.kernel],
                                    arguments_of(own, operation, 1, address),
                                    machine.multiprocessors);
      }
      const simulator::MachineReport report =
          simulator::run_program(own, *forms, address, machine, 1);
      if (!report.ok()) compiler::diagnostic_of(report.faults.front()).raise();
    }
    return;
  }
  const bool on_threads = target_.kind == TargetKind::cpu && !cpu::in_parallel_for();
  compiler::for_each_launch(
      program, arguments,
      [&](const ir::Kernel& kernel, const Arguments& given) {
        if (target_.kind == TargetKind::passes) {
          // Each execution has workspaces of its own.
          Arguments passed = given;
          passed.tensors.resize(tensors_passed(kernel));
          return checks::check_passes(kernel, target_.arch, passed, options_.numerics, simulated_);
        }
        if (target_.kind == TargetKind::cpu) return native(kernel).run(given);
        simulator::InterpreterOptions options;
        options.threads = 0;
        simulator::interpret(kernel, given, options);
      },
      on_threads ? compiler::Streams::on_threads : compiler::Streams::in_turn);
}

const cpu::CompiledKernel& CallerRuns::native(const ir::Kernel& kernel) const {
  const auto found = std::find_if(program_.kernels.begin(), program_.kernels.end(),
                                  [&](const auto& each) { return each.get() == &kernel; });
  return *native_[static_cast<std::size_t>(found - program_.kernels.begin())];
}

// Small buffers that begin as zeros come first, side by side: one call sets them all to zero.
CallerRuns::ScratchPlaces CallerRuns::places_of_scratch(const ir::Program& program) const {
  ScratchPlaces places;
  places.offsets.resize(program.buffers.size());
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (!is_scratch_[i]) continue;
    const std::size_t bytes = bytes_of(program.buffers[i]);
    const ProgramOperation* const zeros = compiler::first_zeros(program, static_cast<int>(i));
    if (zeros == nullptr || bytes > kZeroedTogether) {
      others.push_back(i);
      continue;
    }
    places.zeroed_before.insert(zeros);
    places.offsets[i] = places.zeroed;
    places.zeroed += bytes;
  }
  places.bytes = places.zeroed;
  for (const std::size_t i : others) {
    places.offsets[i] = places.bytes;
    places.bytes += bytes_of(program.buffers[i]);
  }
  return places;
}

std::shared_ptr<const CallerRuns::Prepared> CallerRuns::prepared(
    const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
    const std::vector<double>& scalars) const {
  thread_local std::vector<std::int64_t> key;
  compiler::make_key(tensors, scalars, key);
  key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(stream.handle())));
  const std::uint64_t hash = compiler::hash_of(key);
  const auto found = prepared_.find(hash);
  if (found != prepared_.end() && found->second->key == key) return found->second;

  const Arguments arguments = compiler::make_arguments(signature_, tensors, scalars);
  const ReadBuffers read = read_buffers(stream, arguments);
  const ir::Program program =
      bound(arguments, stream.device().info().multiprocessors, [&](int buffer) {
        const std::vector<std::byte>& bytes = read.at(buffer);
        return ir::BufferContents{bytes.data(), static_cast<std::int64_t>(bytes.size())};
      });
  const ScratchPlaces places = places_of_scratch(program);
  std::byte* const own = scratch(stream, places.bytes);
  std::vector<std::byte*> addresses;
  std::size_t next = 0;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    addresses.push_back(program.buffers[i].is_passed() ? arguments.tensors[next++].data
                                                       : own + places.offsets[i]);
  }
  const auto address = [&](int buffer, int) { return addresses[buffer]; };

  const auto made = std::make_shared<Prepared>();
  made->key = key;
  if (places.zeroed > 0) {
    Prepared::Step step;
    step.zeros = true;
    step.rows.push_back({own, nullptr, static_cast<std::int64_t>(places.zeroed), 1, 0, 0});
    made->steps.push_back(std::move(step));
  }
  for (const ir::ProgramOperation& operation : program.operations) {
    if (places.zeroed_before.contains(&operation)) continue;
    Prepared::Step step;
    if (operation.kind == ProgramKind::launch) {
      step.kernel = compiled_[operation.kernel];
      Arguments given = arguments_of(program, operation, 1, address);
      given.tensors.resize(tensors_passed(*program.kernels[operation.kernel]));
      for (TensorArgument& tensor : given.tensors) {
        step.tensors.push_back(
            {tensor.data, tensor.dtype, std::move(tensor.shape), std::move(tensor.strides)});
      }
      step.scalars = std::move(given.scalars);
    } else if (operation.kind == ProgramKind::copy || operation.kind == ProgramKind::zero) {
      step.zeros = operation.kind == ProgramKind::zero;
      const TensorArgument to = argument_of(program, operation.to, address);
      const TensorArgument from = step.zeros ? to : argument_of(program, operation.from, address);
      ir::for_each_rows(to, from, [&](const ir::CopiedRows& rows) { step.rows.push_back(rows); });
    }
    made->steps.push_back(std::move(step));
  }
  // What it found says what the next run does no longer.
  if (!read.empty()) return made;
  if (prepared_.size() >= compiler::kMaximumPrepared) prepared_.clear();
  prepared_[hash] = made;
  return made;
}

// Once the stream has come to its end, since what is queued on it may write them.
CallerRuns::ReadBuffers CallerRuns::read_buffers(const runtime::Stream& stream,
                                                 const Arguments& arguments) const {
  ReadBuffers buffers;
  for (const ir::ProgramRead& each : program_.reads) {
    if (buffers.count(each.buffer) != 0) continue;
    stream.require_no_capture(
        each.where, fmt::format("{}: the host reads {} in each run", program_.name, each.name));
    const ir::BufferContents on_device = ir::contents_of(program_, arguments.tensors)(each.buffer);
    std::vector<std::byte>& bytes = buffers[each.buffer];
    bytes.resize(static_cast<std::size_t>(on_device.bytes));
    if (!bytes.empty()) runtime::copy_async(bytes.data(), on_device.data, bytes.size(), stream);
  }
  if (!buffers.empty()) stream.synchronize();
  return buffers;
}

// Sizes go by powers of two, so that growing lengths leave few behind.
std::byte* CallerRuns::scratch(const runtime::Stream& stream, std::size_t bytes) const {
  if (bytes == 0) return nullptr;
  std::map<std::size_t, runtime::DeviceBuffer>& own = scratch_[stream.handle()];
  auto found = own.lower_bound(bytes);
  if (found == own.end()) {
    stream.require_no_capture(program_.where, fmt::format("{}: the run needs {} bytes of scratch "
                                                          "memory first",
                                                          program_.name, bytes));
    constexpr std::size_t kLeast = 1 << 16;
    const std::size_t size = std::max(std::bit_ceil(bytes), kLeast);
    found = own.emplace(size,
                        runtime::DeviceBuffer(stream.device(), size, "scratch of " + program_.name))
                .first;
  }
  return static_cast<std::byte*>(found->second.data());
}

}  // namespace tilewright
