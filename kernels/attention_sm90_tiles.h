#pragma once

#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// A tile: some queries of the heads that share a K and V head. Its rows are (query, head), the head
// fastest.
struct Work {
  Block queries, heads;
  Index kv_head, batch;
};

// The order of tiles: the longest rows of a causal mask first, within groups of heads whose K and V
// stay in L2 together.
class TileOrder {
 public:
  TileOrder(const AttentionParameters& p, const Attention& a, int packed_heads);
  Dim count() const { return row_blocks_ * heads_; }
  // Which block of queries, which heads and which batch the tile is: divisions, which one warp does
  // for all.
  struct Place {
    Index row_block, pack, batch;
  };
  Place place(const Index& tile) const;
  Work work(const Place& place) const;

 private:
  const AttentionParameters& p_;
  const Attention& a_;
  int packed_heads_, block_q_;
  Dim row_blocks_, heads_, group_;
};

// The blocks of keys that some of the queries see, [first, last), and those of them that need no
// mask.
struct KeyBlocks {
  KeyBlocks(const AttentionParameters& p, const Attention& a, const Block& queries);
  // No more than those of `tile`, and none where no query exists.
  KeyBlocks within(const KeyBlocks& tile, const Block& queries) const;
  Index first, last, whole_first, whole_last;

 private:
  KeyBlocks(const Index& first, const Index& last, const KeyBlocks& whole)
      : first(first), last(last), whole_first(whole.whole_first), whole_last(whole.whole_last) {}
};

}  // namespace tilewright::kernels
