#pragma once

#include "fake_cuda/fake_cuda.h"
#include "runtime/cuda_api.h"
#include "runtime/runtime_test.h"

namespace tilewright::runtime {

// Makes the fake driver the process's driver. All tests of this program that use a driver use it.
class FakeDriverTest : public testing::Test {
 protected:
  FakeDriverTest() {
    setenv("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA, 1);
    const CudaDriver& driver = cuda_driver();
    state_ = static_cast<FakeCudaState*>(driver.library.find("fake_cuda_state"));
    *state_ = {};
    state_->device_count = 2;
    state_->max_threads = 128;
  }
  ~FakeDriverTest() override { unsetenv("TILEWRIGHT_CUDA_DRIVER"); }

  FakeCudaState* state_;
};

}  // namespace tilewright::runtime
