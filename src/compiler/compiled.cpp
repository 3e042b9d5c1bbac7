#include "compiler/compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/launch_key.h"
#include "runtime/device.h"
#include "support/diagnostic.h"
#include "support/hash.h"

namespace tilewright::compiler {
void make_key(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
              std::vector<std::int64_t>& key) {
  key.clear();
  for (const TensorRef& tensor : tensors) {
    key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data)));
    key.push_back(static_cast<std::int64_t>(tensor.dtype));
    key.push_back(static_cast<std::int64_t>(tensor.shape.size()));
    key.insert(key.end(), tensor.shape.begin(), tensor.shape.end());
    key.push_back(static_cast<std::int64_t>(tensor.strides.size()));
    key.insert(key.end(), tensor.strides.begin(), tensor.strides.end());
  }
  for (const double scalar : scalars) key.push_back(std::bit_cast<std::int64_t>(scalar));
}

std::uint64_t hash_of(const std::vector<std::int64_t>& key) {
  return hash64({reinterpret_cast<const char*>(key.data()), key.size() * sizeof(key[0])});
}

struct CompiledKernel::Prepared {
  std::vector<std::int64_t> key;
  bool empty = false;
  runtime::LaunchShape shape;
  runtime::ParameterBuffer parameters;
  std::vector<void*> arguments;  // into `parameters`
  std::optional<std::size_t> epoch;
};

Arguments make_arguments(const ir::Kernel& kernel, const std::vector<TensorRef>& tensors,
                         const std::vector<double>& scalars) {
  Arguments arguments;
  arguments.scalars = scalars;
  std::vector<std::string> names;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (parameter.is_tensor()) names.push_back(parameter.name);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorRef& tensor = tensors[i];
    TensorArgument argument{i < names.size() ? names[i] : fmt::format("{}", i), tensor.dtype,
                            tensor.shape, tensor.strides, static_cast<std::byte*>(tensor.data)};
    if (argument.strides.empty()) {
      argument.strides.resize(argument.shape.size());
      std::int64_t stride = 1;
      for (std::size_t axis = argument.shape.size(); axis-- > 0;) {
        argument.strides[axis] = stride;
        if (__builtin_mul_overflow(stride, std::max<std::int64_t>(argument.shape[axis], 1),
                                   &stride)) {
          Diagnostic(kernel.where, fmt::format("tensor {}: its sizes overflow 64 bits: {} elements "
                                               "along axis {}",
                                               argument.name, argument.shape[axis], axis))
              .fix("check the order of sizes that the launch passes")
              .raise();
        }
      }
    }
    arguments.tensors.push_back(std::move(argument));
  }
  return arguments;
}

std::unique_ptr<CompiledKernel> compile_for_device(const ir::Kernel& traced,
                                                   const runtime::Device& device,
                                                   const BuildOptions& options) {
  BuiltKernel built = build_kernel(traced, device.info().arch(), options);
  return std::make_unique<CompiledKernel>(std::move(built.program), std::move(built.build), device);
}

namespace {

constexpr double kWatchSeconds = 10;  // where a kernel was built to be watched, and nobody says

bool takes(const codegen::CudaSource& source, codegen::LaunchParameter::Kind kind) {
  return std::any_of(source.parameters.begin(), source.parameters.end(),
                     [kind](const auto& parameter) { return parameter.kind == kind; });
}

}  // namespace

CompiledKernel::CompiledKernel(GpuProgram program, runtime::Build build,
                               const runtime::Device& device)
    : program_(std::move(program)),
      build_(std::move(build)),
      device_(device),
      kernel_(device, build_.kernel.cubin, program_.source.entry),
      reports_(takes(program_.source, codegen::LaunchParameter::Kind::report)
                   ? std::make_unique<const CheckReports>(device, program_.machine)
                   : nullptr),
      watch_(takes(program_.source, codegen::LaunchParameter::Kind::watch)
                 ? std::make_unique<WatchReports>(device, program_.machine,
                                                  watch_seconds().value_or(kWatchSeconds))
                 : nullptr) {
  kernel_.reserve_shared(static_cast<std::size_t>(program_.machine.shared_bytes));
  if (program_.machine.cluster > 8) kernel_.allow_large_clusters();
}

CompiledKernel::~CompiledKernel() = default;

const runtime::DeviceBuffer& CompiledKernel::workspace(const runtime::Stream& stream,
                                                       std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto found = workspaces_.find(stream.handle());
  if (found != workspaces_.end()) return found->second;
  stream.require_no_capture(program_.machine.where,
                            fmt::format("{}: the launch needs {} bytes of workspace first",
                                        program_.machine.name, bytes));
  runtime::DeviceBuffer buffer(device_, bytes, "workspace");
  buffer.fill(0, stream);
  return workspaces_.emplace(stream.handle(), std::move(buffer)).first->second;
}

std::shared_ptr<const CompiledKernel::Prepared> CompiledKernel::prepared(
    const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
    const std::vector<double>& scalars) const {
  thread_local std::vector<std::int64_t> key;
  make_key(tensors, scalars, key);
  const bool has_owned = program_.machine.has_owned();
  if (has_owned) {
    key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(stream.handle())));
  }
  const std::uint64_t hash = hash_of(key);
  {
    const std::lock_guard lock(mutex_);
    const auto found = prepared_.find(hash);
    if (found != prepared_.end() && found->second->key == key) return found->second;
  }
  std::vector<TensorRef> complete = tensors;
  if (has_owned) {
    const auto bytes_of = [](const ir::Parameter& parameter) -> std::size_t {
      constexpr std::size_t kUnit = ir::kOwnedAlignment;
      if (!parameter.is_owned()) return 0;
      return (static_cast<std::size_t>(parameter.element_count()) * 4 + kUnit - 1) / kUnit * kUnit;
    };
    std::size_t bytes = 0;
    for (const auto& parameter : program_.machine.parameters) bytes += bytes_of(parameter);
    auto* next = static_cast<std::byte*>(workspace(stream, bytes).data());
    for (const ir::Parameter& parameter : program_.machine.parameters) {
      if (!parameter.is_owned()) continue;
      complete.push_back({next, parameter.dtype, parameter.constant_shape(), {}});
      next += bytes_of(parameter);
    }
  }
  LaunchPlan plan = this->plan(make_arguments(program_.machine, complete, scalars));
  for (const LaunchPlan::Map& map : plan.maps) {
    plan.parameters.set(map.offset, runtime::encode(map.spec));
  }
  const auto prepared = std::make_shared<Prepared>();
  prepared->key = key;
  prepared->empty = plan.empty;
  prepared->shape = plan.shape;
  prepared->parameters = std::move(plan.parameters);
  prepared->arguments = prepared->parameters.pointers();
  prepared->epoch = plan.epoch;
  const std::lock_guard lock(mutex_);
  if (prepared_.size() >= kMaximumPrepared) prepared_.clear();
  prepared_[hash] = prepared;
  return prepared;
}

void CompiledKernel::prepare(const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
                             const std::vector<double>& scalars) const {
  prepared(stream, tensors, scalars);
}

void CompiledKernel::launch(const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
                            const std::vector<double>& scalars) const {
  const std::shared_ptr<const Prepared> prepared = this->prepared(stream, tensors, scalars);
  if (prepared->empty) return;
  if (!prepared->epoch) {
    kernel_.launch(prepared->shape, stream, prepared->arguments.data());
    return finish_checked(stream);
  }
  {
    // In the order of their epochs, as the stream runs them.
    const std::lock_guard lock(mutex_);
    runtime::ParameterBuffer parameters = prepared->parameters;
    parameters.set(*prepared->epoch, ++epochs_[stream.handle()]);
    kernel_.launch(prepared->shape, stream, parameters.pointers().data());
  }
  finish_checked(stream);
}

void CompiledKernel::finish_checked(const runtime::Stream& stream) const {
  if (reports_ && !stream.is_capturing()) stream.synchronize();
}

LaunchPlan CompiledKernel::plan(const Arguments& arguments) const {
  LaunchPlan plan = plan_launch(program_.machine, program_.source.parameters, arguments,
                                device_.info().multiprocessors, program_.repeated_stores);
  if (plan.report) plan.parameters.set(*plan.report, reports_->address());
  if (plan.watch) plan.parameters.set(*plan.watch, watch_->address());
  return plan;
}

void CompiledKernel::describe_waits(int rank, WordWriters writers) const {
  if (watch_) watch_->describe(rank, std::move(writers));
}

CompiledKernel::Ready CompiledKernel::ready(const Arguments& arguments) const {
  Ready ready{plan(arguments), {}};
  if (ready.plan.empty) return ready;
  for (const LaunchPlan::Map& map : ready.plan.maps) {
    ready.plan.parameters.set(map.offset, runtime::encode(map.spec));
  }
  ready.parameters = ready.plan.parameters.pointers();
  return ready;
}

void CompiledKernel::launch(const runtime::Stream& stream, Ready& ready, std::int32_t epoch) const {
  if (ready.plan.empty) return;
  if (ready.plan.epoch) ready.plan.parameters.set(*ready.plan.epoch, epoch);
  kernel_.launch(ready.plan.shape, stream, ready.parameters.data());
}

void CompiledKernel::launch(const runtime::Stream& stream, Ready& ready,
                            const std::int32_t* epoch) const {
  if (ready.plan.empty) return;
  if (ready.plan.epoch_word) ready.plan.parameters.set(*ready.plan.epoch_word, epoch);
  kernel_.launch(ready.plan.shape, stream, ready.parameters.data());
}

void CompiledKernel::launch(const runtime::Stream& stream, const Arguments& arguments) const {
  Ready ready = this->ready(arguments);
  launch(stream, ready, arguments.epoch);
}

}  // namespace tilewright::compiler
