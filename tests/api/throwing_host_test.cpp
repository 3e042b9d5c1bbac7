#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "tilewright/c_api.h"

namespace tilewright {
namespace {

using Call = void (*)(void* work, int32_t part);

// libtilewright.so cannot catch what a host throws, and the host's runtime still says what it was.
TEST(ThrowingHost, EndsTheProcessAndIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    tilewright_set_parallel_for(
        [](void*, int32_t, Call call, void* work) {
          call(work, 0);
          throw std::runtime_error("no threads left");
        },
        nullptr, 4);
    tilewright_kernel* kernel = nullptr;
    tilewright_kernel_create("softmax", "dtype=f32", "cpu", 0, &kernel);
    constexpr std::int64_t kRows = 1024, kColumns = 64;
    std::vector<float> x(kRows * kColumns, 1), y(kRows * kColumns);
    const std::array<std::int64_t, 2> shape = {kRows, kColumns};
    const std::array<tilewright_tensor, 2> tensors = {
        {{x.data(), "f32", 2, shape.data(), nullptr}, {y.data(), "f32", 2, shape.data(), nullptr}}};
    tilewright_kernel_run(kernel, tensors.data(), 2, nullptr);
  };
  EXPECT_DEATH(run(), "no threads left");
}

}  // namespace
}  // namespace tilewright
