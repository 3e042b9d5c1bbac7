#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/loaded_bounds.h"
#include "compiler/device_tensors.h"
#include "runtime/device.h"
#include "tilewright/compile.h"

// Kernels that check what the launch tells them, on a GPU.
namespace tilewright {
namespace {

class CheckedGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    // A check that fails ends what the process may do with the GPU: each has a process of its own.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    try {
      compile(test::rows_by_index(), "cuda");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      GTEST_SKIP() << error.what();
    }
  }

  // Y {rows, 64} of the kernel, on the list.
  static HostTensor result(const Kernel& kernel, const std::vector<int>& list, std::int64_t rows,
                           bool checked) {
    std::vector<HostTensor> tensors = {test::list_of(list),
                                       HostTensor::random_normal(bf16, {128, 64}, 1),
                                       HostTensor::poisoned(f32, {rows, 64})};
    compiler::DeviceTensors on_device(tensors);
    CompileOptions options;
    options.checked = checked;
    compile(kernel, "cuda", options).run(on_device.refs());
    on_device.synchronize();
    on_device.download(tensors);
    return std::move(tensors[2]);
  }

  // Ends with status 0 once it has said on stderr what the run raises.
  [[noreturn]] static void say_error(const Kernel& kernel, const std::vector<int>& list,
                                     std::int64_t rows) {
    try {
      result(kernel, list, rows, true);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(error.kind() == ErrorKind::result ? 0 : 2);
    }
    std::_Exit(3);
  }
};

TEST_F(CheckedGpuTest, WhatHoldsChangesNoBit) {
  for (const bool products : {false, true}) {
    const Kernel kernel = test::blocks_by_number(products);
    const HostTensor plain = result(kernel, {1, 0, 1}, 64, false);
    const HostTensor checked = result(kernel, {1, 0, 1}, 64, true);
    for (std::int64_t i = 0; i < 64 * 64; ++i) ASSERT_EQ(plain.flat(i), checked.flat(i)) << i;
  }
}

TEST_F(CheckedGpuTest, ARowThatIsNotThere) {
  EXPECT_EXIT(say_error(test::rows_by_index(), {3, 128, 0}, 3), testing::ExitedWithCode(0),
              "loaded_bounds.h:27.*\n?.*index 128 on axis 0 of X, which has 128");
}

TEST_F(CheckedGpuTest, ABlockThatIsNotThere) {
  for (const bool products : {false, true}) {
    EXPECT_EXIT(say_error(test::blocks_by_number(products), {1, -1}, 64),
                testing::ExitedWithCode(0), "begins at -64 on axis 0 of X, which has 128");
  }
}

TEST_F(CheckedGpuTest, ASequenceThatEndsBehindItsTensor) {
  EXPECT_EXIT(say_error(test::sequence(), {100, 130}, 1), testing::ExitedWithCode(0),
              "from 100 that ends at 130 on axis 0 of X, which has 128");
}

}  // namespace
}  // namespace tilewright
