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

std::vector<std::uint16_t> GlobalMemory::written(Range range) const {
  constexpr std::uint64_t kCell = ShadowBlock::kCell, kCells = ShadowBlock::kBytes / kCell;
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(range.begin) / kCell;
  const std::uint64_t end = (reinterpret_cast<std::uint64_t>(range.end) + kCell - 1) / kCell;
  std::vector<std::uint16_t> masks(end - begin);
  for (std::uint64_t block = begin / kCells; block * kCells < end; ++block) {
    const auto found = shadow_.find(block / kPage);
    if (found == shadow_.end()) continue;
    found->second[block % kPage].for_writes([&](const Bytes& bytes) {
      for (std::uint64_t i = 0; i < kCells; ++i) {
        const std::uint64_t cell = block * kCells + i;
        if (!(bytes.cells >> i & 1) || cell < begin || cell >= end) continue;
        masks[cell - begin] |= bytes.mask;
      }
    });
  }
  return masks;
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
