#include "runtime/shared_memory.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/cuda_api.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

using cuda::memory::AccessDescription;
using cuda::memory::AllocationProperties;
using cuda::memory::Handle;

// The driver's calls, by their symbols' types.
using GranularityFunction = cuda::Result(std::size_t*, const AllocationProperties*, int);
using CreateFunction = cuda::Result(Handle*, std::size_t, const AllocationProperties*,
                                    std::uint64_t);
using ReleaseFunction = cuda::Result(Handle);
using ExportFunction = cuda::Result(void*, Handle, int, std::uint64_t);
using ImportFunction = cuda::Result(Handle*, void*, int);
using ReserveFunction = cuda::Result(cuda::DevicePointer*, std::size_t, std::size_t,
                                     cuda::DevicePointer, std::uint64_t);
using RangeFunction = cuda::Result(cuda::DevicePointer, std::size_t);
using MapFunction = cuda::Result(cuda::DevicePointer, std::size_t, std::size_t, Handle,
                                 std::uint64_t);
using AccessFunction = cuda::Result(cuda::DevicePointer, std::size_t, const AccessDescription*,
                                    std::size_t);

template <typename Function, typename... Arguments>
void call(const Device& device, const char* symbol, const std::string& about,
          Arguments... arguments) {
  const CudaDriver& driver = device.driver();
  check_cuda(driver, driver_function<Function>(driver, symbol)(arguments...), symbol, about);
}

AllocationProperties properties_on(const Device& device) {
  AllocationProperties properties = {};
  properties.type = cuda::memory::kPinned;
  properties.handle_types = cuda::memory::kPosixDescriptor;
  properties.location = {cuda::memory::kDevice, device.ordinal()};
  return properties;
}

std::size_t whole_pages(const Device& device, std::size_t bytes, const std::string& name) {
  const AllocationProperties properties = properties_on(device);
  std::size_t page = 1;
  call<GranularityFunction>(device, "cuMemGetAllocationGranularity", name, &page, &properties,
                            cuda::memory::kMinimumGranularity);
  return (bytes + page - 1) / page * page;
}

void require_descriptors(const Device& device, const std::string& name) {
  if (SharedDeviceMemory::is_supported(device)) return;
  Diagnostic({},
             fmt::format("{}: GPU {} cannot share memory by descriptors", name, device.ordinal()),
             ErrorKind::unavailable)
      .fix("a driver and a system on which CUDA exports memory as POSIX file descriptors")
      .raise();
}

}  // namespace

bool SharedDeviceMemory::is_supported(const Device& device) {
  int can = 0;
  check_cuda(
      device.driver(),
      device.driver().cuDeviceGetAttribute(&can, cuda::kPosixDescriptorSupported, device.ordinal()),
      "cuDeviceGetAttribute");
  return can != 0;
}

SharedDeviceMemory::SharedDeviceMemory(const Device& device, std::size_t bytes, std::string name)
    : device_(device), name_(std::move(name)) {
  device.make_current();
  require_descriptors(device, name_);
  const AllocationProperties properties = properties_on(device);
  bytes_ = whole_pages(device, bytes, name_);
  call<CreateFunction>(device, "cuMemCreate",
                       fmt::format("{} needs {} bytes of GPU {}", name_, bytes_, device.ordinal()),
                       &handle_, bytes_, &properties, std::uint64_t{0});
  has_handle_ = true;
  map();
}

SharedDeviceMemory::SharedDeviceMemory(const Device& device, const FileDescriptor& shared,
                                       std::size_t bytes, std::string name)
    : device_(device), name_(std::move(name)) {
  device.make_current();
  bytes_ = whole_pages(device, bytes, name_);
  void* const descriptor = reinterpret_cast<void*>(static_cast<std::uintptr_t>(shared.get()));
  call<ImportFunction>(device, "cuMemImportFromShareableHandle", name_, &handle_, descriptor,
                       static_cast<int>(cuda::memory::kPosixDescriptor));
  has_handle_ = true;
  map();
}

// Whatever fails, what was done before is undone.
void SharedDeviceMemory::map() {
  try {
    call<ReserveFunction>(device_, "cuMemAddressReserve", name_, &address_, bytes_, std::size_t{0},
                          cuda::DevicePointer{0}, std::uint64_t{0});
    call<MapFunction>(device_, "cuMemMap", name_, address_, bytes_, std::size_t{0}, handle_,
                      std::uint64_t{0});
    is_mapped_ = true;
    const AccessDescription access = {{cuda::memory::kDevice, device_.ordinal()},
                                      cuda::memory::kReadWrite};
    call<AccessFunction>(device_, "cuMemSetAccess",
                         fmt::format("GPU {} does not reach {}: GPUs joined by NVLink, or by PCIe "
                                     "with peer access, do",
                                     device_.ordinal(), name_),
                         address_, bytes_, &access, std::size_t{1});
  } catch (...) {
    release();
    throw;
  }
}

// What fails here was reported by an earlier call, or the driver has shut down already.
void SharedDeviceMemory::release() noexcept {
  const CudaDriver& driver = device_.driver();
  if (is_mapped_) driver_function<RangeFunction>(driver, "cuMemUnmap")(address_, bytes_);
  if (address_ != 0) driver_function<RangeFunction>(driver, "cuMemAddressFree")(address_, bytes_);
  if (has_handle_) driver_function<ReleaseFunction>(driver, "cuMemRelease")(handle_);
  is_mapped_ = has_handle_ = false;
  address_ = 0;
}

SharedDeviceMemory::~SharedDeviceMemory() { release(); }

FileDescriptor SharedDeviceMemory::share() const {
  int number = -1;
  call<ExportFunction>(device_, "cuMemExportToShareableHandle", name_, static_cast<void*>(&number),
                       handle_, static_cast<int>(cuda::memory::kPosixDescriptor), std::uint64_t{0});
  return FileDescriptor(number);
}

}  // namespace tilewright::runtime
