#include "runtime/cuda_api.h"

#include "runtime/fake_driver.h"

namespace tilewright::runtime {
namespace {

TEST(CudaDriverSearch, AMissingDriverSaysHowToGetIt) {
  LibraryRequest request = cuda_driver_request();
  EXPECT_EQ(request.candidates.at(0), "libcuda.so.1");
  EXPECT_THAT(request.candidates, testing::Contains("/usr/local/nvidia/lib64/libcuda.so.1"));
  EXPECT_THAT(request.candidates, testing::Contains("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  request.candidates = {"/nonexistent/libcuda.so.1"};
  expect_error(ErrorKind::unavailable,
               {"NVIDIA driver", "/nonexistent/libcuda.so.1", "install the NVIDIA driver"},
               [&] { CudaDriver driver(request); });
}

TEST(CudaDriverSearch, TheVariableIsTheOnlyPlace) {
  const ScopedVariable variable("TILEWRIGHT_CUDA_DRIVER", "/nonexistent/libcuda.so");
  expect_error(ErrorKind::unavailable, {"TILEWRIGHT_CUDA_DRIVER", "/nonexistent/libcuda.so"},
               [] { CudaDriver driver(cuda_driver_request()); });
}

TEST(CudaDriverSearch, ALibraryWithoutAFunctionIsTooOld) {
  expect_error(ErrorKind::unavailable, {"has no cu", "CUDA 12.0 or newer"}, [] {
    CudaDriver driver({"a driver", {"libm.so.6"}, "install one"});
  });
}

TEST(CudaDriverSearch, VersionsReadAsPeopleWriteThem) {
  EXPECT_EQ(cuda_version_text(12040), "12.4");
  EXPECT_EQ(cuda_version_text(13000), "13.0");
}

class CudaErrorTest : public FakeDriverTest {};

TEST_F(CudaErrorTest, HasTheCallTheCodeTheObjectAndTheFix) {
  expect_error(ErrorKind::result,
               {"cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "a fake failure",
                "kernel attention", "tilewright simulate"},
               [] { check_cuda(cuda_driver(), 700, "cuStreamSynchronize", "kernel attention"); });
  expect_error(ErrorKind::unavailable, {"cuMemAlloc: ", "(2)", "free device memory"},
               [] { check_cuda(cuda_driver(), cuda::kErrorOutOfMemory, "cuMemAlloc"); });
  expect_error(ErrorKind::internal, {"cuMemFree: CUDA_ERROR_FAKE (1)"},
               [] { check_cuda(cuda_driver(), 1, "cuMemFree"); });
  EXPECT_NO_THROW(check_cuda(cuda_driver(), cuda::kSuccess, "cuInit"));
}

TEST_F(CudaErrorTest, ADriverThatDoesNotStartSaysWhy) {
  state_->init_result = 803;
  expect_error(ErrorKind::unavailable, {"cuInit", "(803)", "reboot"},
               [] { CudaDriver driver(cuda_driver_request()); });
  state_->init_result = cuda::kErrorNoDevice;
  EXPECT_NO_THROW(CudaDriver driver(cuda_driver_request()));
}

}  // namespace
}  // namespace tilewright::runtime
