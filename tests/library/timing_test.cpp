#include "library/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace tilewright::library {
namespace {

// Also large ones, which the C library places 16 bytes behind a page.
TEST(TimingTest, TensorsOnTheHostBeginWithALineOfTheCaches) {
  std::vector<HostTensor> tensors{HostTensor::random_normal(f32, {1 << 18}, 1),
                                  HostTensor::poisoned(bf16, {3, 5})};
  int launches = 0;
  const auto launch = [&](const std::vector<TensorRef>& refs) {
    ++launches;
    ASSERT_EQ(refs.size(), tensors.size());
    for (std::size_t i = 0; i < refs.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(refs[i].data) % 64, 0u);
      EXPECT_EQ(refs[i].shape, tensors[i].shape());
      EXPECT_EQ(std::memcmp(refs[i].data, tensors[i].data(), tensors[i].size_bytes()), 0);
    }
    // Until a second has passed there are more.
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  };
  const Timing timing = time_on_host(launch, tensors);
  EXPECT_EQ(timing.seconds.size(), static_cast<std::size_t>(launches));
  EXPECT_GE(launches, 3);
}

}  // namespace
}  // namespace tilewright::library
