#include "runtime/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda_api.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

cuda::DevicePointer address(const void* pointer) {
  return reinterpret_cast<cuda::DevicePointer>(pointer);
}

std::string gibibytes(size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (size_t{1} << 30));
}

}  // namespace

std::string DeviceInfo::arch() const {
  // Only these have the architecture-specific instructions that the suffix stands for.
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

int Device::count() {
  const CudaDriver& driver = cuda_driver();
  int count = 0;
  const cuda::Result status = driver.cuDeviceGetCount(&count);
  // A driver that found no GPU when it started says so again, or that it was not started.
  if (status == cuda::kErrorNoDevice || status == cuda::kErrorNotInitialized) return 0;
  check_cuda(driver, status, "cuDeviceGetCount");
  return count;
}

const Device& Device::get(int ordinal) {
  static std::mutex mutex;
  // Never destroyed: buffers and streams of static objects may outlive it otherwise.
  static auto* const devices = new std::vector<std::unique_ptr<const Device>>;

  const int available = count();
  if (available == 0) {
    raise_cuda_error(cuda_driver(), cuda::kErrorNoDevice, "cuDeviceGetCount",
                     "the driver is installed and found no GPU");
  }
  if (ordinal < 0 || ordinal >= available) {
    Diagnostic({}, fmt::format("GPU {} was asked for, and there are {}: 0 to {}", ordinal,
                               available, available - 1))
        .fix("use one of these numbers; CUDA_VISIBLE_DEVICES may hide others")
        .raise();
  }
  const std::lock_guard lock(mutex);
  devices->resize(static_cast<size_t>(available));
  auto& device = (*devices)[static_cast<size_t>(ordinal)];
  if (device == nullptr) device.reset(new Device(cuda_driver(), ordinal));
  return *device;
}

Device::Device(const CudaDriver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {
  cuda::Device handle = 0;
  check_cuda(driver_, driver_.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
  const auto attribute = [&](cuda::DeviceAttribute which) {
    int value = 0;
    check_cuda(driver_, driver_.cuDeviceGetAttribute(&value, which, handle),
               "cuDeviceGetAttribute");
    return value;
  };
  char name[256] = {};
  check_cuda(driver_, driver_.cuDeviceGetName(name, sizeof name, handle), "cuDeviceGetName");
  info_.name = name;
  info_.major = attribute(cuda::kComputeCapabilityMajor);
  info_.minor = attribute(cuda::kComputeCapabilityMinor);
  info_.multiprocessors = attribute(cuda::kMultiprocessorCount);
  info_.l2_bytes = static_cast<size_t>(attribute(cuda::kL2CacheSize));
  info_.max_shared_bytes = static_cast<size_t>(attribute(cuda::kMaxSharedMemoryPerBlockOptin));
  check_cuda(driver_, driver_.cuDeviceTotalMem(&info_.memory_bytes, handle), "cuDeviceTotalMem");
  check_cuda(driver_, driver_.cuDevicePrimaryCtxRetain(&context_, handle),
             "cuDevicePrimaryCtxRetain", fmt::format("GPU {} ({})", ordinal, info_.name));
}

void Device::make_current() const {
  check_cuda(driver_, driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

size_t Device::free_bytes() const {
  make_current();
  size_t free = 0;
  size_t total = 0;
  check_cuda(driver_, driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

Stream::Stream(const Device& device) : device_(&device) {
  device.make_current();
  check_cuda(device.driver(), device.driver().cuStreamCreate(&handle_, cuda::kStreamNonBlocking),
             "cuStreamCreate");
}

Stream Stream::borrow(const Device& device, CUstream_st* handle) {
  return Stream(device, handle, false);
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_),
      handle_(std::exchange(other.handle_, nullptr)),
      owned_(std::exchange(other.owned_, false)) {}

Stream::~Stream() {
  // A failure here was reported by an earlier call, or the driver has shut down already.
  if (owned_ && handle_ != nullptr) device_->driver().cuStreamDestroy(handle_);
}

bool Stream::is_default() const {
  return handle_ == nullptr || handle_ == reinterpret_cast<CUstream_st*>(cuda::kStreamLegacy);
}

void Stream::synchronize() const {
  device_->make_current();
  check_cuda(device_->driver(), device_->driver().cuStreamSynchronize(handle_),
             "cuStreamSynchronize");
}

BesideCaptures::BesideCaptures(const Device& device)
    : driver_(device.driver()), mode_(cuda::kCaptureRelaxed) {
  check_cuda(driver_, driver_.cuThreadExchangeStreamCaptureMode(&mode_),
             "cuThreadExchangeStreamCaptureMode");
}

BesideCaptures::~BesideCaptures() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

bool Stream::is_capturing() const {
  device_->make_current();
  int status = 0;
  check_cuda(device_->driver(), device_->driver().cuStreamIsCapturing(handle_, &status),
             "cuStreamIsCapturing");
  return status != 0;
}

void Stream::require_no_capture(SourceLocation where, const std::string& what) const {
  if (!is_capturing()) return;
  Diagnostic(where, what + ", and the stream is being captured in a CUDA graph")
      .fix("run once on this stream with the same tensors before the capture, or call prepare")
      .raise();
}

void Stream::wait(const Event& event) const {
  device_->make_current();
  check_cuda(device_->driver(), device_->driver().cuStreamWaitEvent(handle_, event.handle(), 0),
             "cuStreamWaitEvent");
}

Event::Event(const Device& device, Timing timing) : device_(&device) {
  device.make_current();
  const unsigned flags = timing == Timing::on ? 0 : cuda::kEventDisableTiming;
  check_cuda(device.driver(), device.driver().cuEventCreate(&handle_, flags), "cuEventCreate");
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Event::~Event() {
  if (handle_ != nullptr) device_->driver().cuEventDestroy(handle_);
}

void Event::record(const Stream& stream) const {
  device_->make_current();
  check_cuda(device_->driver(), device_->driver().cuEventRecord(handle_, stream.handle()),
             "cuEventRecord");
}

void Event::synchronize() const {
  check_cuda(device_->driver(), device_->driver().cuEventSynchronize(handle_),
             "cuEventSynchronize");
}

bool Event::has_come() const {
  const cuda::Result result = device_->driver().cuEventQuery(handle_);
  if (result == cuda::kErrorNotReady) return false;
  check_cuda(device_->driver(), result, "cuEventQuery");
  return true;
}

double Event::elapsed_seconds(const Event& start, const Event& end) {
  float milliseconds = 0;
  check_cuda(start.device_->driver(),
             start.device_->driver().cuEventElapsedTime(&milliseconds, start.handle_, end.handle_),
             "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

DeviceBuffer::DeviceBuffer(const Device& device, size_t bytes, std::string name)
    : device_(&device), bytes_(bytes), name_(std::move(name)) {
  if (bytes == 0) return;  // the driver refuses to allocate nothing
  device.make_current();
  cuda::DevicePointer pointer = 0;
  const cuda::Result status = device.driver().cuMemAlloc(&pointer, bytes);
  if (status == cuda::kErrorOutOfMemory) {
    raise_cuda_error(device.driver(), status, "cuMemAlloc",
                     fmt::format("{} needs {}, and GPU {} has {} free of {}", name_,
                                 gibibytes(bytes), device.ordinal(), gibibytes(device.free_bytes()),
                                 gibibytes(device.info().memory_bytes)));
  }
  check_cuda(device.driver(), status, "cuMemAlloc", name_);
  data_ = reinterpret_cast<void*>(pointer);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      name_(std::move(other.name_)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(name_, other.name_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) return;
  device_->driver().cuMemFree(address(data_));
}

void DeviceBuffer::check_range(std::string_view action, size_t bytes, size_t offset) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return;
  Diagnostic({}, fmt::format("{} {}: {} bytes at offset {}, and the buffer has {} bytes", action,
                             name_, bytes, offset, bytes_))
      .fix("copy no more than the buffer holds, or allocate a larger one")
      .raise();
}

void DeviceBuffer::upload(const void* from, size_t bytes, const Stream& stream,
                          size_t offset) const {
  check_range("upload to", bytes, offset);
  copy_async(static_cast<char*>(data_) + offset, from, bytes, stream);
}

void DeviceBuffer::download(void* to, size_t bytes, const Stream& stream, size_t offset) const {
  check_range("download from", bytes, offset);
  copy_async(to, static_cast<const char*>(data_) + offset, bytes, stream);
}

void DeviceBuffer::fill(unsigned char value, const Stream& stream) const {
  if (bytes_ == 0) return;
  stream.device().make_current();
  const CudaDriver& driver = device_->driver();
  check_cuda(driver, driver.cuMemsetD8Async(address(data_), value, bytes_, stream.handle()),
             "cuMemsetD8Async", name_);
}

PinnedBuffer::PinnedBuffer(const Device& device, size_t bytes) : device_(&device), bytes_(bytes) {
  if (bytes == 0) return;
  device.make_current();
  check_cuda(device.driver(),
             device.driver().cuMemHostAlloc(&data_, bytes, cuda::kHostAllocPortable),
             "cuMemHostAlloc", fmt::format("{} of pinned host memory", gibibytes(bytes)));
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) device_->driver().cuMemFreeHost(data_);
}

void copy_async(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  stream.device().make_current();
  const CudaDriver& driver = stream.device().driver();
  check_cuda(driver, driver.cuMemcpyAsync(address(to), address(from), bytes, stream.handle()),
             "cuMemcpyAsync", fmt::format("{} bytes", bytes));
}

void copy_rows_async(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t bytes,
                     size_t rows, const Stream& stream) {
  if (rows == 1 || std::max(to_pitch, from_pitch) > cuda::kMaxPitch) {
    for (size_t row = 0; row < rows; ++row) {
      copy_async(static_cast<char*>(to) + row * to_pitch,
                 static_cast<const char*>(from) + row * from_pitch, bytes, stream);
    }
    return;
  }
  stream.device().make_current();
  const auto side = [](const void* data, size_t pitch) {
    return cuda::Copy2DSide{0, 0, cuda::kMemoryUnified, nullptr, address(data), nullptr, pitch};
  };
  const cuda::Copy2D copy = {side(from, from_pitch), side(to, to_pitch), bytes, rows};
  const CudaDriver& driver = stream.device().driver();
  check_cuda(driver, driver.cuMemcpy2DAsync(&copy, stream.handle()), "cuMemcpy2DAsync",
             fmt::format("{} rows of {} bytes", rows, bytes));
}

void zero_rows_async(void* to, size_t pitch, size_t bytes, size_t rows, const Stream& stream) {
  if (bytes == 0 || rows == 0) return;
  stream.device().make_current();
  const CudaDriver& driver = stream.device().driver();
  const cuda::Result result =
      rows == 1 ? driver.cuMemsetD8Async(address(to), 0, bytes, stream.handle())
                : driver.cuMemsetD2D8Async(address(to), pitch, 0, bytes, rows, stream.handle());
  check_cuda(driver, result, rows == 1 ? "cuMemsetD8Async" : "cuMemsetD2D8Async",
             fmt::format("{} rows of {} bytes", rows, bytes));
}

}  // namespace tilewright::runtime
