#include "runtime/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/cubin.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

constexpr size_t kSharedWithoutAsking = 48 * 1024;
constexpr unsigned kMaxGridYZ = 65535;
constexpr unsigned kMaxGridX = 0x7fffffff;

std::string text(const Extent3& extent) {
  return fmt::format("{}x{}x{}", extent.x, extent.y, extent.z);
}

std::string text(const LaunchShape& shape) {
  return fmt::format("grid {}, block {}, cluster {}, {} bytes of dynamic shared memory",
                     text(shape.grid), text(shape.block), text(shape.cluster), shape.shared_bytes);
}

uint64_t volume(const Extent3& extent) { return uint64_t{extent.x} * extent.y * extent.z; }

// The driver's form of a launch; the attributes live as long as the launch.
struct Configuration {
  Configuration(const LaunchShape& shape, cuda::Stream stream) {
    unsigned count = 0;
    if (volume(shape.cluster) > 1) {
      cuda::LaunchAttribute& cluster = attributes[count++];
      cluster.id = cuda::kClusterDimension;
      cluster.value.cluster.x = shape.cluster.x;
      cluster.value.cluster.y = shape.cluster.y;
      cluster.value.cluster.z = shape.cluster.z;
    }
    if (shape.cooperative) {
      cuda::LaunchAttribute& cooperative = attributes[count++];
      cooperative.id = cuda::kCooperative;
      cooperative.value.cooperative = 1;
    }
    config = {shape.grid.x,  shape.grid.y,       shape.grid.z, shape.block.x,     shape.block.y,
              shape.block.z, shape.shared_bytes, stream,       attributes.data(), count};
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;

  std::array<cuda::LaunchAttribute, 2> attributes;
  cuda::LaunchConfig config;
};

// A cluster's sides are not 0, so that they may divide.
bool divides(const Extent3& cluster, const Extent3& grid) {
  return grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

}  // namespace

size_t ParameterBuffer::add(const void* value, size_t bytes, size_t alignment) {
  const size_t offset = (bytes_.size() + alignment - 1) / alignment * alignment;
  bytes_.resize(offset + bytes);
  std::memcpy(bytes_.data() + offset, value, bytes);
  offsets_.push_back(offset);
  return offset;
}

std::vector<void*> ParameterBuffer::pointers() {
  std::vector<void*> pointers;
  pointers.reserve(offsets_.size());
  for (const size_t offset : offsets_) pointers.push_back(bytes_.data() + offset);
  return pointers;
}

LoadedModule::LoadedModule(const Device& device, std::string_view cubin, std::string name)
    : device_(device), name_(std::move(name)), cubin_(cubin) {
  device.make_current();
  const CudaDriver& driver = device.driver();
  check_cuda(driver, driver.cuModuleLoadData(&handle_, cubin_.data()), "cuModuleLoadData",
             fmt::format("{}, a cubin of {} bytes, on GPU {} ({}, {}) with a driver for CUDA {}",
                         name_, cubin_.size(), device.ordinal(), device.info().name,
                         device.info().arch(), cuda_version_text(driver.version)));
}

LoadedModule::~LoadedModule() {
  if (handle_ != nullptr) device_.driver().cuModuleUnload(handle_);
}

LoadedKernel::LoadedKernel(const Device& device, std::string_view cubin, std::string name)
    : LoadedKernel(std::make_shared<LoadedModule>(device, cubin, name), name) {}

LoadedKernel::LoadedKernel(std::shared_ptr<const LoadedModule> module, std::string name)
    : module_(std::move(module)), name_(std::move(name)) {
  const CudaDriver& driver = module_->device_.driver();
  module_->device_.make_current();

  const cuda::Result found =
      driver.cuModuleGetFunction(&function_, module_->handle_, name_.c_str());
  if (found == cuda::kErrorNotFound) {
    std::vector<std::string> kernels;
    for (const CubinFunction& function : read_cubin(module_->cubin_)) {
      if (function.is_kernel) kernels.push_back(function.name);
    }
    Diagnostic({},
               fmt::format("{} has no kernel {}: it has {}", module_->name_, name_,
                           fmt::join(kernels, ", ")),
               ErrorKind::internal)
        .raise();
  }
  check_cuda(driver, found, "cuModuleGetFunction", name_);

  const auto attribute = [&](cuda::FunctionAttribute which) {
    int value = 0;
    check_cuda(driver, driver.cuFuncGetAttribute(&value, which, function_), "cuFuncGetAttribute",
               name_);
    return value;
  };
  attributes_.registers = attribute(cuda::kNumRegs);
  attributes_.static_shared_bytes = attribute(cuda::kSharedSizeBytes);
  attributes_.max_threads = attribute(cuda::kMaxThreadsPerBlock);
  const auto fixed = static_cast<size_t>(attributes_.static_shared_bytes);
  max_dynamic_shared_ = kSharedWithoutAsking - std::min(fixed, kSharedWithoutAsking);
}

void LoadedKernel::reserve_shared(size_t dynamic_bytes) {
  if (dynamic_bytes <= max_dynamic_shared_) return;
  const Device& device = module_->device_;
  const size_t limit = device.info().max_shared_bytes;
  const size_t fixed = static_cast<size_t>(attributes_.static_shared_bytes);
  if (dynamic_bytes + fixed > limit) {
    Diagnostic({}, fmt::format("kernel {} needs {} bytes of shared memory ({} dynamic, {} static), "
                               "and a block on GPU {} ({}) may have {}",
                               name_, dynamic_bytes + fixed, dynamic_bytes, fixed, device.ordinal(),
                               device.info().name, limit))
        .fix("use fewer stages or smaller tiles: `tilewright explain` lists the allocations")
        .raise();
  }
  device.make_current();
  check_cuda(device.driver(),
             device.driver().cuFuncSetAttribute(function_, cuda::kMaxDynamicSharedSizeBytes,
                                                static_cast<int>(dynamic_bytes)),
             "cuFuncSetAttribute",
             fmt::format("{}: {} bytes of shared memory", name_, dynamic_bytes));
  max_dynamic_shared_ = dynamic_bytes;
}

void LoadedKernel::allow_large_clusters() {
  const Device& device = module_->device_;
  device.make_current();
  check_cuda(device.driver(),
             device.driver().cuFuncSetAttribute(function_, cuda::kNonPortableClusterSizeAllowed, 1),
             "cuFuncSetAttribute", name_ + ": clusters of more than 8 blocks");
}

void LoadedKernel::launch(const LaunchShape& shape, const Stream& stream,
                          void* const* arguments) const {
  const uint64_t threads = volume(shape.block);
  const bool valid = volume(shape.grid) > 0 && shape.grid.x <= kMaxGridX &&
                     shape.grid.y <= kMaxGridYZ && shape.grid.z <= kMaxGridYZ && threads > 0 &&
                     threads <= static_cast<uint64_t>(attributes_.max_threads) &&
                     volume(shape.cluster) > 0 && divides(shape.cluster, shape.grid) &&
                     shape.shared_bytes <= max_dynamic_shared_ &&
                     &stream.device() == &module_->device_;
  if (!valid) refuse(shape, stream);

  const Device& device = module_->device_;
  device.make_current();
  const Configuration configuration(shape, stream.handle());
  const cuda::Result status = device.driver().cuLaunchKernelEx(
      &configuration.config, function_, const_cast<void**>(arguments), nullptr);
  if (status != cuda::kSuccess) {
    raise_cuda_error(device.driver(), status, "cuLaunchKernelEx",
                     fmt::format("kernel {}: {}", name_, text(shape)));
  }
}

void LoadedKernel::refuse(const LaunchShape& shape, const Stream& stream) const {
  const Device& device = module_->device_;
  std::string why;
  const char* fix = nullptr;
  if (&stream.device() != &device) {
    why = fmt::format("the stream belongs to GPU {}, and the kernel was loaded on GPU {}",
                      stream.device().ordinal(), device.ordinal());
    fix = "load the kernel on the stream's GPU";
  } else if (volume(shape.grid) == 0) {
    why = "the grid has no block";
    fix = "launch only when there is something to compute";
  } else if (volume(shape.block) == 0) {
    why = "a block has no thread";
    fix = "give every side of the block at least 1";
  } else if (volume(shape.block) > static_cast<uint64_t>(attributes_.max_threads)) {
    why = fmt::format("{} threads a block, and the kernel was compiled for at most {}",
                      volume(shape.block), attributes_.max_threads);
    fix = "use fewer threads, or raise the kernel's maximum";
  } else if (volume(shape.cluster) == 0 || !divides(shape.cluster, shape.grid)) {
    why = "the cluster does not divide the grid";
    fix = "round the grid up to whole clusters";
  } else if (shape.shared_bytes > max_dynamic_shared_) {
    why = fmt::format("{} bytes of dynamic shared memory, and {} are reserved", shape.shared_bytes,
                      max_dynamic_shared_);
    fix = "reserve the memory before the launch";
  } else {
    why = fmt::format("a grid has at most {} x {} x {} blocks", kMaxGridX, kMaxGridYZ, kMaxGridYZ);
    fix = "let each block compute more, or fold the axis into x";
  }
  Diagnostic({}, fmt::format("launch of kernel {}: {} ({})", name_, why, text(shape)))
      .fix(fix)
      .raise();
}

}  // namespace tilewright::runtime
