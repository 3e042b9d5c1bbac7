#pragma once

#include <cstddef>
#include <vector>

#include "runtime/device.h"
#include "tilewright/tensor_ref.h"

namespace tilewright::compiler {

// Copies of host tensors in a GPU's memory.
class DeviceTensors {
 public:
  explicit DeviceTensors(const std::vector<HostTensor>& tensors, int device = 0);

  const runtime::Stream& stream() const { return stream_; }
  std::vector<TensorRef> refs() const;
  void synchronize() const;
  // Fills a tensor with bytes of 0xFF: NaN.
  void poison(std::size_t tensor) const;
  // What one of them holds from here on; it stays until the stream has come there.
  void upload(std::size_t number, const HostTensor& tensor) const;
  void download(std::vector<HostTensor>& tensors) const;
  // One of them, when the stream has come there.
  void download(std::size_t number, HostTensor& tensor) const;

 private:
  runtime::Stream stream_;
  std::vector<runtime::DeviceBuffer> buffers_;
  std::vector<TensorRef> refs_;
};

}  // namespace tilewright::compiler
