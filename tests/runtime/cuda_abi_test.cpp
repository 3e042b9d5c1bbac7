// Holds the declarations of cuda_api.h against the toolkit's own header, where it is installed.

#include "runtime/cuda_api.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace tilewright::runtime {
namespace {

static_assert(sizeof(cuda::LaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, shared_bytes) ==
              offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(cuda::Copy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(sizeof(cuda::MemoryType) == sizeof(CUmemorytype));
static_assert(offsetof(cuda::Copy2D, from.device) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(cuda::Copy2D, from.pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(cuda::Copy2D, to.type) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(cuda::Copy2D, to.device) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(cuda::Copy2D, to.pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(cuda::Copy2D, bytes_of_row) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(offsetof(cuda::Copy2D, rows) == offsetof(CUDA_MEMCPY2D, Height));
static_assert(sizeof(cuda::memory::Handle) == sizeof(CUmemGenericAllocationHandle));
static_assert(sizeof(cuda::memory::AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(cuda::memory::AllocationProperties, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(offsetof(cuda::memory::AllocationProperties, compression) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(cuda::memory::AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(offsetof(cuda::memory::AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(cuda::memory::IpcHandle) == sizeof(CUipcMemHandle));
static_assert(sizeof(cuda::words::Operation) == sizeof(CUstreamBatchMemOpParams));
static_assert(offsetof(cuda::words::Operation, address) ==
              offsetof(CUstreamBatchMemOpParams, waitValue.address));
static_assert(offsetof(cuda::words::Operation, value) ==
              offsetof(CUstreamBatchMemOpParams, writeValue.value));
static_assert(offsetof(cuda::words::Operation, flags) ==
              offsetof(CUstreamBatchMemOpParams, waitValue.flags));
static_assert(sizeof(cuda::DevicePointer) == sizeof(CUdeviceptr));

TEST(CudaAbi, ValuesAreTheHeaders) {
  EXPECT_EQ(cuda::kErrorNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuda::kErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda::kErrorNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(cuda::kErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuda::kErrorNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda::kErrorNotFound, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(int{cuda::kMultiprocessorCount}, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(int{cuda::kPciBus}, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  EXPECT_EQ(int{cuda::kPciDevice}, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  EXPECT_EQ(int{cuda::kPciDomain}, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  EXPECT_EQ(int{cuda::kL2CacheSize}, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(int{cuda::kComputeCapabilityMajor}, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(int{cuda::kComputeCapabilityMinor}, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(int{cuda::kMaxSharedMemoryPerBlockOptin},
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(int{cuda::kPosixDescriptorSupported},
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  EXPECT_EQ(int{cuda::words::kWait}, CU_STREAM_MEM_OP_WAIT_VALUE_32);
  EXPECT_EQ(int{cuda::words::kWrite}, CU_STREAM_MEM_OP_WRITE_VALUE_32);
  EXPECT_EQ(cuda::words::kAtLeast, CU_STREAM_WAIT_VALUE_GEQ);
  EXPECT_EQ(cuda::words::kEqual, CU_STREAM_WAIT_VALUE_EQ);
  EXPECT_EQ(cuda::memory::kPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(cuda::memory::kDevice, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(cuda::memory::kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_EQ(cuda::memory::kMinimumGranularity, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  EXPECT_EQ(cuda::memory::kPosixDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_EQ(int{cuda::kMaxThreadsPerBlock}, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(int{cuda::kSharedSizeBytes}, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  EXPECT_EQ(int{cuda::kNumRegs}, CU_FUNC_ATTRIBUTE_NUM_REGS);
  EXPECT_EQ(int{cuda::kMaxDynamicSharedSizeBytes}, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(int{cuda::kNonPortableClusterSizeAllowed},
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  EXPECT_EQ(int{cuda::kClusterDimension}, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(int{cuda::kMemoryUnified}, CU_MEMORYTYPE_UNIFIED);
  EXPECT_EQ(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuda::kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(cuda::kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
}

}  // namespace
}  // namespace tilewright::runtime

#else

TEST(CudaAbi, ValuesAreTheHeaders) { GTEST_SKIP() << "cuda.h is not installed"; }

#endif
