#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/host_tensor.h"

namespace tilewright {

// A tensor in memory: the GPU's for cuda, else the host's. What TMA copies begins at a multiple of
// 16 bytes, and so do its rows.
struct TensorRef {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;    // elements of each axis
  std::vector<std::int64_t> strides;  // in elements; empty for row-major
};
inline TensorRef ref(HostTensor& tensor) {
  return {tensor.data(), tensor.dtype(), tensor.shape(), tensor.strides()};
}

}  // namespace tilewright
