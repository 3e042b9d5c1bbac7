#pragma once

#include <string>

#include "tilewright/asynchronous.h"

// The explicit level for sm_90a: what any GPU with asynchronous copies has, and wgmma. Raises
// Error(usage) at the caller's line for operands of shapes, dtypes or layouts that there is no
// product of, and in kernels whose target has no wgmma.
namespace tilewright {

// a {64, k} (shared, or registers) times b {k, n} (shared) for this warpgroup, with f32 sums {64,
// n}. Each call is one commit group. With `accumulator` {64, n} the product is added to it.
Pending wgmma(const SharedView& a, const SharedView& b, SourceLocation where = here());
Pending wgmma(const TileOperand& a, const SharedView& b, SourceLocation where = here());
Pending wgmma(const SharedView& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where = here());
Pending wgmma(const TileOperand& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where = here());
// Adds to a product that is in flight: the two run one after the other. If `a` is in registers, it
// may not be read or written before a wait for this product or a later one.
Pending wgmma(const SharedView& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where = here());
Pending wgmma(const TileOperand& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where = here());
// Waits for the product, and gives its result. Later products may stay in flight.
Tile wait(const Pending& product, SourceLocation where = here());
// Waits for the product without reading it: its operands may be overwritten.
void retire(const Pending& product, SourceLocation where = here());
// The tile as a product that is already over: for loops that carry a product around.
Pending as_pending(const TileOperand& tile, SourceLocation where = here());

// A product's result {64, columns} as {64 * columns}, in the order of the registers of the
// warpgroup that holds it: four that lie side by side are one thread's, and a warp's 128 follow
// each other. In global memory such a tile is written, read and added to in whole lines.
Tile fragments(const Tile& product, SourceLocation where = here());
// The tile whose fragments these are.
Tile from_fragments(const Tile& fragments, int columns, SourceLocation where = here());

// A tensor of f32 {tiles, 64 * columns} that holds tiles of {64, columns} as fragments() orders
// them: the layout is the tensor's, so that who writes it and who reads it cannot differ in it. At
// both levels; the columns are a power of two from 8 to 256. Raises for another tensor or tile.
class FragmentTensor {
 public:
  FragmentTensor(const Tensor& tensor, int columns, SourceLocation where = here());
  void store(const IndexOperand& number, const Tile& tile, SourceLocation where = here()) const;
  // As add() of the tile level, and atomic_add() of the explicit one.
  void add(const IndexOperand& number, const Tile& tile, Order order,
           SourceLocation where = here()) const;
  Tile load(const IndexOperand& number, SourceLocation where = here()) const;

 private:
  Tile checked(const char* what, const Tile& tile, SourceLocation where) const;
  Tensor tensor_;
  int columns_;
};

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
