#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/execution.h"
#include "runtime/device.h"
#include "runtime/nvrtc.h"
#include "tilewright/compile.h"

namespace tilewright::test {

class HopperTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = &runtime::Device::get();
      runtime::Nvrtc::get();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    const runtime::DeviceInfo& info = device_->info();
    if (info.arch() != "sm_90a") {
      GTEST_SKIP() << info.name << " is a GPU of " << info.arch()
                   << ", and the kernels are of sm_90a";
    }
    stream_.emplace(*device_);
  }

  const runtime::Device& device() const { return *device_; }
  const runtime::Stream& stream() const { return *stream_; }
  static double tolerance(DType dtype) { return dtype == bf16 ? kTolerance : 5e-4; }

 private:
  const runtime::Device* device_ = nullptr;
  std::optional<runtime::Stream> stream_;
};

// A padded tensor and its copy on the GPU, padding included.
class DeviceTensor {
 public:
  DeviceTensor(const runtime::Device& device, const runtime::Stream& stream, Padded tensor)
      : host(std::move(tensor)), argument_(host.argument("")), buffer_(device, bytes(), "tensor") {
    upload(stream);
  }
  DeviceTensor(const DeviceTensor&) = delete;

  // `offset` bytes past where it is.
  TensorRef ref(std::ptrdiff_t offset = 0) const {
    return {static_cast<std::byte*>(buffer_.data()) + offset, argument_.dtype, argument_.shape,
            argument_.strides};
  }
  void upload(const runtime::Stream& stream) const {
    buffer_.upload(argument_.data, buffer_.size(), stream);
  }
  void poison(const runtime::Stream& stream) const { buffer_.fill(0xFF, stream); }
  void download(const runtime::Stream& stream) const {
    buffer_.download(argument_.data, buffer_.size(), stream);
    stream.synchronize();
  }
  std::vector<std::byte> bits(const runtime::Stream& stream) const {
    download(stream);
    return {argument_.data, argument_.data + buffer_.size()};
  }
  // Ordered on the stream, to pinned memory.
  void download(std::byte* to, const runtime::Stream& stream) const {
    buffer_.download(to, buffer_.size(), stream);
  }
  // The padded axes are one longer than the tensor's.
  std::size_t bytes() const {
    return static_cast<std::size_t>(argument_.strides[0] * (argument_.shape[0] + 1) *
                                    size_of(argument_.dtype));
  }

  Padded host;

 private:
  TensorArgument argument_;
  runtime::DeviceBuffer buffer_;
};

}  // namespace tilewright::test
