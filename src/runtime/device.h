#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tilewright/error.h"

struct CUctx_st;
struct CUevent_st;
struct CUstream_st;

namespace tilewright::runtime {

struct CudaDriver;

struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  size_t max_shared_bytes = 0;  // of one block, dynamic and static together
  // The architecture whose cubins it runs: "sm_90a".
  std::string arch() const;
};

// A GPU of this process, with its primary context: the one that PyTorch and the CUDA runtime use.
class Device {
 public:
  // 0 without a GPU; Error(unavailable) without a driver.
  static int count();
  // Opened at the first call for this number, kept until the process ends. Safe from any thread.
  static const Device& get(int ordinal = 0);
  ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  const DeviceInfo& info() const { return info_; }
  const CudaDriver& driver() const { return driver_; }
  CUctx_st* context() const { return context_; }
  size_t free_bytes() const;
  // The calling thread's driver calls go to this device from here on. Everything below does it.
  void make_current() const;

 private:
  Device(const CudaDriver& driver, int ordinal);

  const CudaDriver& driver_;
  int ordinal_;
  CUctx_st* context_ = nullptr;
  DeviceInfo info_;
};

class Event;

// While it lives, the thread may load and allocate although another one captures a CUDA graph.
class BesideCaptures {
 public:
  explicit BesideCaptures(const Device& device);
  ~BesideCaptures();
  BesideCaptures(const BesideCaptures&) = delete;

 private:
  const CudaDriver& driver_;
  int mode_;  // that of before
};

// An ordered queue of GPU work.
class Stream {
 public:
  explicit Stream(const Device& device);
  // Somebody else's stream (PyTorch's current one, or null for the default stream): not destroyed.
  static Stream borrow(const Device& device, CUstream_st* handle);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  const Device& device() const { return *device_; }
  CUstream_st* handle() const { return handle_; }
  // The one that a null handle names, or CU_STREAM_LEGACY.
  bool is_default() const;
  // Also reports the faults of kernels that were launched before.
  void synchronize() const;
  void wait(const Event& event) const;
  // Whether what is queued becomes part of a CUDA graph: nothing may then be allocated or built.
  bool is_capturing() const;
  // Raises a usage error of a capture that lacks `what`.
  void require_no_capture(SourceLocation where, const std::string& what) const;

 private:
  Stream(const Device& device, CUstream_st* handle, bool owned)
      : device_(&device), handle_(handle), owned_(owned) {}

  const Device* device_;
  CUstream_st* handle_ = nullptr;
  bool owned_ = true;
};

// A point in a stream's work.
class Event {
 public:
  enum class Timing { on, off };
  // Without timing it is cheaper to record and to wait for.
  explicit Event(const Device& device, Timing timing = Timing::on);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;

  CUevent_st* handle() const { return handle_; }
  void record(const Stream& stream) const;
  void synchronize() const;
  // Whether it was reached, or never recorded. Also reports what failed before it.
  bool has_come() const;
  // Both events have timing and were reached.
  static double elapsed_seconds(const Event& start, const Event& end);

 private:
  const Device* device_;
  CUevent_st* handle_ = nullptr;
};

// Memory of one device. A copy outside of it is an Error(usage) with both sizes.
class DeviceBuffer {
 public:
  // `name` is what errors call it: the tensor's name.
  DeviceBuffer(const Device& device, size_t bytes, std::string name);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  const Device& device() const { return *device_; }
  void* data() const { return data_; }
  size_t size() const { return bytes_; }
  const std::string& name() const { return name_; }

  // Ordered on the stream. From or to pageable memory the call returns when that memory may be
  // reused; with pinned memory it returns at once.
  void upload(const void* from, size_t bytes, const Stream& stream, size_t offset = 0) const;
  void download(void* to, size_t bytes, const Stream& stream, size_t offset = 0) const;
  // Sets every byte: 0xFF poisons floating-point tensors with NaN.
  void fill(unsigned char value, const Stream& stream) const;

 private:
  void check_range(std::string_view action, size_t bytes, size_t offset) const;

  const Device* device_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::string name_;
};

// Host memory that the copy engines read and write directly, from every device.
class PinnedBuffer {
 public:
  PinnedBuffer(const Device& device, size_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&&) = delete;

  void* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  const Device* device_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Between any two addresses that the driver knows, also of two devices.
void copy_async(void* to, const void* from, size_t bytes, const Stream& stream);

// `rows` rows of `bytes` each, whose beginnings are a pitch of bytes apart: one copy, unless a
// pitch is more than the driver takes.
void copy_rows_async(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t bytes,
                     size_t rows, const Stream& stream);

// Zeros in rows that are so apart.
void zero_rows_async(void* to, size_t pitch, size_t bytes, size_t rows, const Stream& stream);

}  // namespace tilewright::runtime
