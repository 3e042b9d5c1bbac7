#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/dynamic_library.h"

// The driver's own opaque types, so that handles of other libraries (PyTorch's streams) fit as they
// are.
struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUmod_st;
struct CUstream_st;

namespace tilewright::runtime {

// The part of the driver's binary interface that Tilewright calls. Values and layouts are those of
// CUDA 12.0 and later; tests/runtime/cuda_abi_test.cpp compares them with cuda.h where it is
// installed.
namespace cuda {

using Result = int;
using Device = int;
using DevicePointer = uint64_t;
using Context = CUctx_st*;
using Event = CUevent_st*;
using Function = CUfunc_st*;
using Module = CUmod_st*;
using Stream = CUstream_st*;

constexpr Result kSuccess = 0;
constexpr Result kErrorOutOfMemory = 2;
constexpr Result kErrorNotInitialized = 3;
constexpr Result kErrorNoDevice = 100;
constexpr Result kErrorInvalidDevice = 101;
constexpr Result kErrorNotFound = 500;
constexpr Result kErrorNotReady = 600;

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kPciBus = 33,
  kPciDevice = 34,
  kL2CacheSize = 38,
  kPciDomain = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
  kPosixDescriptorSupported = 103,
};

enum FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedSizeBytes = 1,
  kNumRegs = 4,
  kMaxDynamicSharedSizeBytes = 8,
  kNonPortableClusterSizeAllowed = 14,
};

enum LaunchAttributeId : int {
  kCooperative = 2,
  kClusterDimension = 4,
};

union LaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } cluster;
};

struct LaunchAttribute {
  LaunchAttributeId id;
  char pad[4];
  LaunchAttributeValue value;
};

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

enum MemoryType : unsigned {
  kMemoryUnified = 4,
};

struct Copy2DSide {
  size_t x, y;
  MemoryType type;
  const void* host;
  DevicePointer device;
  void* array;
  size_t pitch;
};

struct Copy2D {
  Copy2DSide from, to;
  size_t bytes_of_row, rows;
};
constexpr size_t kMaxPitch = INT32_MAX;

constexpr unsigned kStreamNonBlocking = 1;
constexpr std::uintptr_t kStreamLegacy = 1;  // a handle
constexpr int kCaptureRelaxed = 2;
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kHostAllocPortable = 1;

// Writes of words by streams, and waits for them.
namespace words {

enum Kind : int { kWait = 1, kWrite = 2 };
constexpr unsigned kAtLeast = 0, kEqual = 1, kWriteDefault = 0;
constexpr unsigned kMostOfACall = 256;

struct Operation {
  Kind kind;
  DevicePointer address;
  uint64_t value;  // of the low 32 bits
  unsigned flags;
  DevicePointer alias;  // the driver's
  uint64_t pad;
};

}  // namespace words

// Memory apart from where it is mapped, which other processes may map too.
namespace memory {

using Handle = uint64_t;
constexpr int kPinned = 1, kDevice = 1, kReadWrite = 3, kMinimumGranularity = 0;
constexpr int kPosixDescriptor = 1;

struct Location {
  int type, id;
};

struct AllocationProperties {
  int type, handle_types;
  Location location;
  void* windows;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
};

struct AccessDescription {
  Location location;
  int flags;
};

struct IpcHandle {
  char bytes[64];
};

}  // namespace memory

}  // namespace cuda

// member, exported symbol, parameters
// clang-format off
#define TILEWRIGHT_CUDA_DRIVER_FUNCTIONS(X) \
  X(cuInit, "cuInit", (unsigned flags)) \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int* version)) \
  X(cuGetErrorName, "cuGetErrorName", (cuda::Result code, const char** text)) \
  X(cuGetErrorString, "cuGetErrorString", (cuda::Result code, const char** text)) \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int* count)) \
  X(cuDeviceGet, "cuDeviceGet", (cuda::Device* device, int ordinal)) \
  X(cuDeviceGetName, "cuDeviceGetName", (char* name, int size, cuda::Device device)) \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, cuda::DeviceAttribute attribute, cuda::Device device)) \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t* bytes, cuda::Device device)) \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (cuda::Context* context, cuda::Device device)) \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (cuda::Context context)) \
  X(cuModuleLoadData, "cuModuleLoadData", (cuda::Module* module, const void* image)) \
  X(cuModuleUnload, "cuModuleUnload", (cuda::Module module)) \
  X(cuModuleGetFunction, "cuModuleGetFunction", (cuda::Function* function, cuda::Module module, const char* name)) \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (cuda::Function function, cuda::FunctionAttribute attribute, int value)) \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", (int* value, cuda::FunctionAttribute attribute, cuda::Function function)) \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", (const cuda::LaunchConfig* config, cuda::Function function, void** parameters, void** extra)) \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t* free, size_t* total)) \
  X(cuMemAlloc, "cuMemAlloc_v2", (cuda::DevicePointer* pointer, size_t bytes)) \
  X(cuMemFree, "cuMemFree_v2", (cuda::DevicePointer pointer)) \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void** pointer, size_t bytes, unsigned flags)) \
  X(cuMemFreeHost, "cuMemFreeHost", (void* pointer)) \
  X(cuMemcpyAsync, "cuMemcpyAsync", (cuda::DevicePointer to, cuda::DevicePointer from, size_t bytes, cuda::Stream stream)) \
  X(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2", (const cuda::Copy2D* copy, cuda::Stream stream)) \
  X(cuMemsetD8Async, "cuMemsetD8Async", (cuda::DevicePointer to, unsigned char value, size_t bytes, cuda::Stream stream)) \
  X(cuMemsetD2D8Async, "cuMemsetD2D8Async", (cuda::DevicePointer to, size_t pitch, unsigned char value, size_t bytes_of_row, size_t rows, cuda::Stream stream)) \
  X(cuStreamCreate, "cuStreamCreate", (cuda::Stream* stream, unsigned flags)) \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (cuda::Stream stream)) \
  X(cuStreamSynchronize, "cuStreamSynchronize", (cuda::Stream stream)) \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (cuda::Stream stream, int* status)) \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int* mode)) \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (cuda::Stream stream, cuda::Event event, unsigned flags)) \
  X(cuEventCreate, "cuEventCreate", (cuda::Event* event, unsigned flags)) \
  X(cuEventDestroy, "cuEventDestroy_v2", (cuda::Event event)) \
  X(cuEventRecord, "cuEventRecord", (cuda::Event event, cuda::Stream stream)) \
  X(cuEventQuery, "cuEventQuery", (cuda::Event event)) \
  X(cuEventSynchronize, "cuEventSynchronize", (cuda::Event event)) \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float* milliseconds, cuda::Event start, cuda::Event end)) \
  X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", (void* map, int element_type, uint32_t rank, void* base, const uint64_t* sizes, const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion, int oob_fill))
// clang-format on

struct CudaDriver;
[[noreturn]] void raise_missing_function(const CudaDriver& driver, const char* symbol);

struct CudaDriver {
  // Throws Error(unavailable) when the library or one of its functions is missing, or when it
  // refuses to start for another reason than that there is no GPU.
  explicit CudaDriver(const LibraryRequest& request);

  DynamicLibrary library;
  int version = 0;  // of CUDA, as the driver counts: 12040 is 12.4

#define TILEWRIGHT_DECLARE(member, symbol, parameters) cuda::Result(*member) parameters = nullptr;
  TILEWRIGHT_CUDA_DRIVER_FUNCTIONS(TILEWRIGHT_DECLARE)
#undef TILEWRIGHT_DECLARE
};

// A function beyond those above, asked for where it is needed: who does without also does with a
// driver that has none. Throws Error(unavailable) where it is missing.
template <typename Function>
Function* driver_function(const CudaDriver& driver, const char* symbol) {
  Function* function = nullptr;
  if (!driver.library.bind(function, symbol)) raise_missing_function(driver, symbol);
  return function;
}

// Where the driver is looked for. $TILEWRIGHT_CUDA_DRIVER, when set, is the only place.
LibraryRequest cuda_driver_request();

// Loaded at the first call, kept until the process ends. A failure is tried again by the next call.
const CudaDriver& cuda_driver();

// "12.4" of 12040.
std::string cuda_version_text(int version);

// While it lives, whatever the driver says, `raise` may say more, as what a kernel has reported
// before it ended itself. It raises that, or returns.
class FaultReporter {
 public:
  explicit FaultReporter(std::function<void()> raise);
  ~FaultReporter();
  FaultReporter(const FaultReporter&) = delete;
  FaultReporter& operator=(const FaultReporter&) = delete;

 private:
  friend void raise_reported();
  const std::function<void()> raise_;
};

// Throws with the call's name, the code's name and meaning, `about` (which object), and what to do.
[[noreturn]] void raise_cuda_error(const CudaDriver& driver, cuda::Result code, const char* call,
                                   std::string_view about);

inline void check_cuda(const CudaDriver& driver, cuda::Result code, const char* call,
                       std::string_view about = {}) {
  if (code != cuda::kSuccess) raise_cuda_error(driver, code, call, about);
}

}  // namespace tilewright::runtime
