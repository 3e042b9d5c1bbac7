#include "check/fuzz/tile_value.h"

#include <algorithm>

namespace tilewright::checks::fuzz {
namespace {

constexpr std::int64_t kLargestTile = 128 * 192;

}  // namespace

unsigned cut_by(Axis axis) {
  const bool whole = axis == Axis::one || axis == Axis::inner || axis == Axis::part;
  return whole ? 0 : 1u << static_cast<unsigned>(axis);
}
Cuts cuts_of(const std::vector<Axis>& axes) {
  Cuts cuts;
  for (const Axis axis : axes) cuts.push_back(cut_by(axis));
  return cuts;
}
Cuts joined(Cuts a, const Cuts& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] |= b[i];
  return a;
}
bool within(const Cuts& inner, const Cuts& outer) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == 0) continue;
    if ((inner[i] | outer[i]) != outer[i] || outer[i] == kUnknownCut) return false;
  }
  return true;
}

bool broadcasts(const Tile& a, const Tile& b, bool both) {
  const std::vector<std::int64_t>&x = a.shape(), &y = b.shape();
  if (x.size() != y.size()) return false;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != y[i] && y[i] != 1 && (!both || x[i] != 1)) return false;
    elements *= std::max(x[i], y[i]);
  }
  return elements <= kLargestTile;
}

Tile as(const Tile& tile, DType dtype) { return tile.dtype() == dtype ? tile : tile.cast(dtype); }

}  // namespace tilewright::checks::fuzz
