#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/program.h"

// How functions of rows and columns go over the axes of tiles.
namespace tilewright::cpu {

inline bool any_empty(const Index& extents, std::size_t rank) {
  return std::any_of(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(rank),
                     [](std::int64_t extent) { return extent <= 0; });
}

inline std::int64_t extent_of(const Index& extents, std::size_t axis) {
  return axis == Walk::kNoAxis ? 1 : extents[axis];
}
inline std::int64_t stride_of(const Index& strides, std::size_t axis) {
  return axis == Walk::kNoAxis ? 0 : strides[axis];
}

inline std::int64_t offset(const Index& at, const Index& strides,
                           const std::vector<std::size_t>& axes) {
  std::int64_t bytes = 0;
  for (const std::size_t axis : axes) bytes += at[axis] * strides[axis];
  return bytes;
}

// Calls `visit(at)` for each place on the walk's outer axes; none of the extents is 0.
template <typename Visit>
void for_outer(const Walk& walk, const Index& extents, Visit visit) {
  Index at = {};
  while (true) {
    visit(at);
    std::size_t i = walk.outer.size();
    for (; i-- > 0;) {
      const std::size_t axis = walk.outer[i];
      if (++at[axis] < extents[axis]) break;
      at[axis] = 0;
    }
    if (i == SIZE_MAX) return;
  }
}

// Elements of rows that are whole vectors of any instruction set.
constexpr std::int64_t kWholeVectors = 16;

// The place of functions that go by the elements' bytes.
inline int width_of(std::int64_t bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

}  // namespace tilewright::cpu
