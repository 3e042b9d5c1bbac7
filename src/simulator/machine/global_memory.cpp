#include "simulator/machine/global_memory.h"

#include <fmt/format.h>

#include <algorithm>

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

void GlobalMemory::add_written(Range range) {
  const bool known = std::any_of(written_.begin(), written_.end(), [&](const Range& other) {
    return other.begin <= range.begin && range.end <= other.end;
  });
  if (!known) written_.push_back(range);
}

std::string GlobalMemory::describe(const std::byte* first, std::int64_t bytes) const {
  for (const Named& each : names_) {
    if (!each.range.has(first)) continue;
    const std::int64_t offset = first - each.range.begin;
    return fmt::format("{} +{:#x}..{:#x}", each.name, offset, offset + bytes - 1);
  }
  return {};
}

}  // namespace tilewright::simulator
