#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/device_tensors.h"
#include "runtime/device.h"
#include "runtime/nvrtc.h"
#include "schedules/adding_kernels.h"
#include "tilewright/compile.h"

// What adding_test.cpp simulates, on a GPU.
namespace tilewright {
namespace {

class AddingOnGpu : public testing::TestWithParam<test::AddingCase> {
 protected:
  void SetUp() override {
    try {
      runtime::Device::get();
      runtime::Nvrtc::get();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    const runtime::DeviceInfo& info = runtime::Device::get().info();
    if (info.arch() != "sm_90a") GTEST_SKIP() << info.name << " is a GPU of " << info.arch();
  }
};

INSTANTIATE_TEST_SUITE_P(Cases, AddingOnGpu, testing::ValuesIn(test::adding_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AddingOnGpu, AgreesWithFloat64AndKeepsItsBits) {
  for (const Order order : {Order::blocks, Order::any}) {
    SCOPED_TRACE(order == Order::any ? "any" : "blocks");
    const Executable executable = compile(GetParam().kernel(order), "cuda");
    const std::vector<HostTensor> before = GetParam().tensors();
    const std::vector<double> wanted = GetParam().wanted(before);
    HostTensor first;
    // Each launch finds the word of turns as the one before left it.
    for (int launch = 0; launch < 50; ++launch) {
      std::vector<HostTensor> after = before;
      const compiler::DeviceTensors on_device(after);
      on_device.synchronize();
      executable.run(on_device.refs(), {}, on_device.stream().handle());
      on_device.download(after);
      if (launch == 0) first = after.back();
      if (order == Order::blocks) {
        ASSERT_TRUE(after.back() == first) << "launch " << launch;
      }
      double error = 0, size = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double got = after.back().flat(static_cast<std::int64_t>(i));
        ASSERT_TRUE(std::isfinite(got)) << "element " << i;
        error += (got - wanted[i]) * (got - wanted[i]);
        size += wanted[i] * wanted[i];
      }
      ASSERT_LE(std::sqrt(error), GetParam().bound * std::sqrt(size)) << "launch " << launch;
    }
  }
}

}  // namespace
}  // namespace tilewright
