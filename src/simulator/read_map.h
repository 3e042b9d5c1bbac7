#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/tensor_access.h"
#include "support/arguments.h"

namespace tilewright::simulator {

// Which elements of dense tensors a run reads, by where they lie. Blocks may note at the same time.
class ReadMap {
 public:
  explicit ReadMap(const std::vector<TensorArgument>& tensors);
  // What a load of a tile of this shape reads of its box.
  void note(const Box& box, const std::vector<std::int64_t>& shape,
            const std::vector<std::int64_t>& extents);
  void note(const std::byte* element);
  // Of a tensor of the list, row-major: whether anybody has read it.
  std::vector<bool> elements_read(std::size_t tensor) const;

 private:
  struct Range {
    const std::byte* first = nullptr;
    std::int64_t elements = 0, element_bytes = 1;
    std::unique_ptr<std::atomic<bool>[]> is_read;
    bool holds(const std::byte* place) const {
      return place >= first && place < first + elements * element_bytes;
    }
  };
  Range* range_of(const std::byte* place);
  std::vector<Range> ranges_;
};

}  // namespace tilewright::simulator
