#pragma once

#include <utility>

#include "tilewright/ranks.h"

namespace tilewright::kernels {

// Tiles that have as many rows of each rank: this rank's first, then those of the next one, and so
// on. A product counts its rows as if each rank had whole runs of them.
class JoinedRows {
 public:
  JoinedRows(Kernel& kernel, int ranks, int block_m, const Dim& m)
      : kernel_(kernel), ranks_(ranks), block_m_(block_m), m_(m) {}

  int ranks() const { return ranks_; }
  // Of each rank in a tile.
  int count() const { return block_m_ / ranks_; }
  Dim tiles() const { return ceil_div(m_, count()); }
  Dim all() const { return tiles() * block_m_; }
  // Whose rows have this place in a tile.
  Index rank_at(const Index& distance) const { return (kernel_.rank() + distance) % ranks_; }
  // The rows of each rank in a tile.
  Block of_tile(const Block& tile) const {
    return Block(tile.start() / block_m_ * count(), count(), m_);
  }
  // Some of a tile's rows, all of one rank: of which, and its rows.
  std::pair<Index, Block> of_part(const Block& part) const {
    const Index tile = part.start() / block_m_, place = part.start() % block_m_;
    return {rank_at(place / count()), Block(tile * count() + place % count(), part.size(), m_)};
  }

 private:
  Kernel& kernel_;
  const int ranks_, block_m_;
  const Dim m_;
};

}  // namespace tilewright::kernels
