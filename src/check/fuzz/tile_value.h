#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/tile.h"

namespace tilewright::checks::fuzz {

// What an axis of a tile runs along: it decides which tensors the tile may be loaded from and
// stored to.
enum class Axis : std::uint8_t { one, rows, columns, depth, inner, part };

// The limits that may end each axis of a tile: bits of Axis. A tile of coordinates is whole, and
// what it is added to is not.
using Cuts = std::vector<unsigned>;
// Of a part of an axis: wherever it begins in it.
inline constexpr unsigned kUnknownCut = ~0u;

struct TileValue {
  Tile tile;
  std::vector<Axis> axes;
  Cuts cuts;
};

// The bit of the limit that ends an axis; 0 where tensors exist whole along it.
unsigned cut_by(Axis axis);
Cuts cuts_of(const std::vector<Axis>& axes);
Cuts joined(Cuts a, const Cuts& b);
// Whether what ends an axis of the one for certain ends that of the other.
bool within(const Cuts& inner, const Cuts& outer);

// Whether `b` stretches to `a`'s shape, with `both` also the other way round.
bool broadcasts(const Tile& a, const Tile& b, bool both);
Tile as(const Tile& tile, DType dtype);

}  // namespace tilewright::checks::fuzz
