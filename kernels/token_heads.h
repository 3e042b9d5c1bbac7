#pragma once

#include <algorithm>
#include <bit>

#include "tilewright/plan_case.h"
#include "tilewright/tile.h"

// Kernels that take a token's heads a few at a time.
namespace tilewright::kernels {

inline Block columns_of(int first, int size) {
  return Block(Index(first), size, Index(first + size));
}

// Heads of `dim` elements that one block of the grid takes. A token's are few bytes: many CTAs are
// under way together.
inline int heads_of_block(int heads, int dim) {
  constexpr int kTileElements = 2048;
  const auto most = std::bit_floor(static_cast<unsigned>(std::max(kTileElements / dim, 1)));
  const auto size = static_cast<int>(std::min(most, std::bit_ceil(static_cast<unsigned>(heads))));
  plan_case("heads in several blocks", heads > size);
  plan_case("heads fill their blocks", heads % size == 0);
  return size;
}

}  // namespace tilewright::kernels
