#pragma once

#include <string>

#include "tilewright/asynchronous.h"

// The explicit level for sm_90a: what any GPU with asynchronous copies has, and wgmma. Raises
// Error(usage) at the caller's line for operands of shapes, dtypes or layouts that there is no
// product of, and in kernels whose target has no wgmma.
namespace tilewright {

// a {64, k} (shared, or registers) times b {k, n} (shared) for this warpgroup: one commit group.
Pending wgmma(const SharedView& a, const SharedView& b, SourceLocation where = here());
Pending wgmma(const TileOperand& a, const SharedView& b, SourceLocation where = here());
Pending wgmma(const SharedView& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where = here());
Pending wgmma(const TileOperand& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where = here());
// Adds to what is in flight: the products run one after the other. A tile a may not be read or
// written before a wait for one of the products behind it.
Pending wgmma(const SharedView& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where = here());
Pending wgmma(const TileOperand& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where = here());
Tile wait(const Pending& product, SourceLocation where = here());
// Waits for the product without reading it: its operands may be overwritten.
void retire(const Pending& product, SourceLocation where = here());
Pending as_pending(const TileOperand& tile, SourceLocation where = here());

// A product's result {64, columns} as {64 * columns}, in the order of the registers of the
// warpgroup that holds it: four that lie side by side are one thread's, and a warp's 128 follow
// each other. In global memory such a tile is written, read and added to in whole lines.
Tile fragments(const Tile& product, SourceLocation where = here());
// The tile whose fragments these are.
Tile from_fragments(const Tile& fragments, int columns, SourceLocation where = here());

// f32 tiles of {64, columns} in shared memory, in the order of the registers of the warpgroup that
// stores one: for itself, or for the warpgroup of another CTA that holds the same elements.
class SharedFragments {
 public:
  SharedFragments(Kernel& kernel, std::string name, int count, int columns,
                  SourceLocation where = here());
  void store(const IndexOperand& place, const TileOperand& tile, SourceLocation where = here());
  Tile load(const IndexOperand& place, SourceLocation where = here()) const;
  // From the CTA of the cluster that has this rank.
  Tile load(const IndexOperand& place, const IndexOperand& cta,
            SourceLocation where = here()) const;

 private:
  Tile load(const IndexOperand& place, const IndexOperand* cta, SourceLocation where) const;
  Handle shared_;
  int columns_;
};

}  // namespace tilewright
