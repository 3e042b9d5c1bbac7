#include "compiler/device_tensors.h"

#include <algorithm>

namespace tilewright::compiler {
namespace {

// The default stream: Executable::run queues there too.
runtime::Stream default_stream(int device) {
  return runtime::Stream::borrow(runtime::Device::get(device), nullptr);
}

}  // namespace

DeviceTensors::DeviceTensors(const std::vector<HostTensor>& tensors, int device)
    : stream_(default_stream(device)) {
  for (const HostTensor& tensor : tensors) {
    buffers_.emplace_back(stream_.device(), std::max<std::size_t>(tensor.size_bytes(), 1), "");
    upload(buffers_.size() - 1, tensor);
    refs_.push_back({buffers_.back().data(), tensor.dtype(), tensor.shape(), tensor.strides()});
  }
  synchronize();
}

std::vector<TensorRef> DeviceTensors::refs() const { return refs_; }

void DeviceTensors::synchronize() const { stream_.synchronize(); }

void DeviceTensors::poison(std::size_t tensor) const { buffers_[tensor].fill(0xFF, stream_); }

void DeviceTensors::upload(std::size_t number, const HostTensor& tensor) const {
  const std::size_t bytes = tensor.size_bytes();
  if (bytes > 0) buffers_[number].upload(tensor.data(), bytes, stream_);
}

void DeviceTensors::download(std::vector<HostTensor>& tensors) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) download(i, tensors[i]);
}

void DeviceTensors::download(std::size_t number, HostTensor& tensor) const {
  const std::size_t bytes = tensor.size_bytes();
  if (bytes > 0) buffers_[number].download(tensor.data(), bytes, stream_);
  synchronize();
}

}  // namespace tilewright::compiler
