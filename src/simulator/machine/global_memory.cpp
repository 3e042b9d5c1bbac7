#include "simulator/machine/global_memory.h"

namespace tilewright::simulator {

GlobalMemory::Range GlobalMemory::range_of(const TensorArgument& tensor) {
  std::int64_t low = 0, high = size_of(tensor.dtype);
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 0) return {tensor.data, tensor.data};
    const std::int64_t reach =
        (tensor.shape[axis] - 1) * tensor.strides[axis] * size_of(tensor.dtype);
    (reach < 0 ? low : high) += reach;
  }
  return {tensor.data + low, tensor.data + high};
}

}  // namespace tilewright::simulator
