#include "driver/compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "driver/launch_plan.h"
#include "runtime/device.h"
#include "support/diagnostic.h"
#include "support/hash.h"

namespace tilewright::driver {
namespace {

// Enough for the tensors of a model's layers; past it all are forgotten, which only costs time.
constexpr std::size_t kMaximumPrepared = 1024;

// Everything of a launch's arguments, flat.
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

}  // namespace

struct CompiledKernel::Prepared {
  std::vector<std::int64_t> key;
  bool empty = false;
  runtime::LaunchShape shape;
  runtime::ParameterBuffer parameters;
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

CompiledKernel::CompiledKernel(GpuProgram program, runtime::Build build,
                               const runtime::Device& device)
    : program_(std::move(program)),
      build_(std::move(build)),
      device_(device),
      kernel_(device, build_.kernel.cubin, program_.source.entry) {
  kernel_.reserve_shared(static_cast<std::size_t>(program_.machine.shared_bytes));
  if (program_.machine.cluster > 8) kernel_.allow_large_clusters();
}

CompiledKernel::~CompiledKernel() = default;

std::shared_ptr<const CompiledKernel::Prepared> CompiledKernel::prepare(
    const std::vector<TensorRef>& tensors, const std::vector<double>& scalars) const {
  thread_local std::vector<std::int64_t> key;
  make_key(tensors, scalars, key);
  const std::uint64_t hash = hash_of(key);
  {
    const std::lock_guard lock(mutex_);
    const auto found = prepared_.find(hash);
    if (found != prepared_.end() && found->second->key == key) return found->second;
  }
  LaunchPlan plan = plan_launch(program_.machine, program_.source.parameters,
                                make_arguments(program_.machine, tensors, scalars),
                                device_.info().multiprocessors);
  for (const LaunchPlan::Map& map : plan.maps) {
    plan.parameters.set(map.offset, runtime::encode(map.spec));
  }
  auto prepared = std::make_shared<const Prepared>(
      Prepared{key, plan.empty, plan.shape, std::move(plan.parameters)});
  const std::lock_guard lock(mutex_);
  if (prepared_.size() >= kMaximumPrepared) prepared_.clear();
  prepared_[hash] = prepared;
  return prepared;
}

void CompiledKernel::launch(const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
                            const std::vector<double>& scalars) const {
  const std::shared_ptr<const Prepared> prepared = prepare(tensors, scalars);
  if (!prepared->empty) kernel_.launch(prepared->shape, stream, prepared->parameters);
}

}  // namespace tilewright::driver
