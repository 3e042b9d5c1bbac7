#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"
#include "tilewright/asynchronous.h"
#include "tilewright/kernel.h"

namespace tilewright::schedules {

// Blocks of the grid that add to memory in their order. Each has its turn from before the first
// operation of its outermost level that adds until behind the last, and waits for those before it.
// CTAs take blocks in their order, and all run at once: that of the lowest block waits for nobody.
class BlockTurns {
 public:
  explicit BlockTurns(const ir::Kernel& tile);

  bool any() const { return first_ != nullptr; }
  void declare(Kernel& kernel, SourceLocation where);
  bool begin_at(const ir::Operation& o) const { return &o == first_; }
  bool end_at(const ir::Operation& o) const { return &o == last_; }
  // Whether a block adds more than once, so that its own warps have to keep an order.
  bool adds_again() const { return adds_again_; }

  // Each warp waits until all blocks with lower numbers have added.
  void wait(const Index& number, SourceLocation where) const;
  // By one warp, when all of the block's have added: the next of `count` blocks may. The last one
  // leaves the word as it was.
  void pass_on(const Index& number, const Index& count, SourceLocation where) const;

 private:
  const ir::Operation *first_ = nullptr, *last_ = nullptr;
  bool adds_again_ = false;
  std::optional<Tensor> turn_;
};

// Of a block of the grid with this number, x fastest.
std::vector<Index> indices_of(const std::vector<Dim>& grid, const Index& number);
Dim blocks_of(const std::vector<Dim>& grid);

}  // namespace tilewright::schedules
