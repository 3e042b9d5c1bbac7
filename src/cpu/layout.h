#pragma once

#include <cstdint>
#include <vector>

#include "cpu/program.h"

namespace tilewright::cpu {

// Kernels may touch so many elements at once (kernels.h).
inline constexpr std::int64_t kGroup = 16;
// Where tiles begin, in bytes.
inline constexpr std::int64_t kAlignment = 64;
std::int64_t round_up(std::int64_t count, std::int64_t multiple);

Element element_of(DType dtype);
int bytes_of(Element element);
// Where arithmetic of the dtype is done; a memory format has none, and its bits are taken as whole
// numbers.
Lane lane_of(DType dtype);

// A tile of the shape, as the arena holds it, of which all elements along the axes that are not
// `held` are equal.
Tile make_tile(DType dtype, const std::vector<std::int64_t>& shape, const std::vector<bool>& held);
Tile make_tile(DType dtype, const std::vector<std::int64_t>& shape);

// Whether the elements along an axis of more than one are all the same one.
bool is_stretched(const Tile& tile);
// Whether elements lie alike, whatever axes of size 1 there are.
bool lie_alike(const Tile& a, const Tile& b);

// The axis that is contiguous; Walk::kNoAxis of a tile of one element.
std::size_t contiguous_axis(const Tile& tile);
// Columns are the contiguous axis, rows the one before of those that are held.
Walk walk_of(const Tile& tile);
// The same with given rows and columns.
Walk walk_of(const Tile& tile, std::size_t rows, std::size_t columns);

}  // namespace tilewright::cpu
