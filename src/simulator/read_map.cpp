#include "simulator/read_map.h"

#include <algorithm>

namespace tilewright::simulator {

ReadMap::ReadMap(const std::vector<TensorArgument>& tensors) {
  for (const TensorArgument& tensor : tensors) {
    Range& range = ranges_.emplace_back();
    range.first = tensor.data;
    range.element_bytes = tensor.element_bytes();
    range.elements = 1;
    for (const std::int64_t extent : tensor.shape) range.elements *= extent;
    range.is_read = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(range.elements));
  }
}

ReadMap::Range* ReadMap::range_of(const std::byte* place) {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(),
                                  [&](const Range& range) { return range.holds(place); });
  return found == ranges_.end() ? nullptr : &*found;
}

void ReadMap::note(const Box& box, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& extents) {
  for_each_row(
      box, shape, extents, [&](const std::byte* first, std::int64_t step, std::int64_t count) {
        Range* const range = range_of(first);
        if (!range) return;  // memory of a program's own
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t at = (first + i * step - range->first) / range->element_bytes;
          range->is_read[static_cast<std::size_t>(at)].store(true, std::memory_order_relaxed);
        }
      });
}

void ReadMap::note(const std::byte* element) {
  Range* const range = range_of(element);
  if (!range) return;
  const std::int64_t at = (element - range->first) / range->element_bytes;
  range->is_read[static_cast<std::size_t>(at)].store(true, std::memory_order_relaxed);
}

std::vector<bool> ReadMap::elements_read(std::size_t tensor) const {
  const Range& range = ranges_.at(tensor);
  std::vector<bool> read(static_cast<std::size_t>(range.elements));
  for (std::size_t i = 0; i < read.size(); ++i) read[i] = range.is_read[i];
  return read;
}

}  // namespace tilewright::simulator
