#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

// Windows of the memories of cores with explicit memories.
namespace tilewright::ir {

// Rows and columns of a window as who takes it sees them.
struct Extent2 {
  std::int64_t rows = 0, columns = 0;
  friend bool operator==(const Extent2&, const Extent2&) = default;
};
inline Extent2 transposed(Extent2 extent) { return {extent.columns, extent.rows}; }
inline Extent2 lying_extent(const Type& window) { return {window.shape[0], window.shape[1]}; }
// `made`: the operation `window`.
inline bool is_transposed(const Operation& made) {
  return made.attributes.integer_or(Key::transposed, 0) != 0;
}
inline Extent2 seen_extent(const Operation& made, const Type& window) {
  const Extent2 lying = lying_extent(window);
  return is_transposed(made) ? transposed(lying) : lying;
}
// Of a part of a tensor: of the axes that are not indexed away the last is that of columns, and the
// others are rows, one axis inside of the other. None has a size below 0.
inline Extent2 box_extent(const std::vector<std::int64_t>& sizes) {
  Extent2 extent{1, 1};
  for (const std::int64_t size : sizes) {
    if (size != 0) extent = {extent.rows * extent.columns, size};
  }
  return extent;
}
// The same, as a row or a column where the window is one.
inline Extent2 box_extent(const std::vector<std::int64_t>& sizes, Extent2 window) {
  const Extent2 extent = box_extent(sizes);
  const std::int64_t all = extent.rows * extent.columns;
  if (window.columns == 1) return {all, 1};
  return window.rows == 1 ? Extent2{1, all} : extent;
}
constexpr std::int64_t kBoxAxes = 3;
// Of three axes the first says how many matrices lie below each other.
inline std::int64_t box_matrices(const std::vector<std::int64_t>& sizes) {
  std::int64_t axes = 0, first = 1;
  for (const std::int64_t size : sizes) {
    if (size != 0 && axes++ == 0) first = size;
  }
  return axes < kBoxAxes ? 1 : first;
}
inline std::string to_string(Extent2 extent) {
  return "{" + std::to_string(extent.rows) + ", " + std::to_string(extent.columns) + "}";
}

}  // namespace tilewright::ir
