#pragma once

#include <string>

#include "tilewright/asynchronous.h"
#include "tilewright/memory_order.h"

// Kernels of several ranks, at the explicit level: signals between them, and the order of accesses
// to memory that others access meanwhile. Kernel::symmetric and Tensor::at reach the ranks'
// tensors. What does not fit, an order that PTX does not have too, raises Error(usage).
namespace tilewright {

// Words that are there in every rank (Kernel::signals): counted up, waited for, never reset.
class Signals {
 public:
  explicit Signals(Handle handle) : handle_(handle) {}
  // Those of another rank.
  Signals at(const IndexOperand& rank) const;
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

// By one lane of each warp that gets here: sets the word, or adds to it. What the lane did before,
// and what it knows that others did, is there for who waits for the word.
// The semantics is relaxed or release.
void signal(const Signals& to, const IndexOperand& index, const IndexOperand& value,
            MemoryOrder order = {Semantics::release, Scope::system}, SourceLocation where = here());
void signal_add(const Signals& to, const IndexOperand& index, const IndexOperand& value,
                MemoryOrder order = {Semantics::release, Scope::system},
                SourceLocation where = here());

// Until the word compares so to the value; lt, le, gt, ge by the sign of their difference modulo
// 2^32, so that words may run over. The semantics is relaxed or acquire. What other ranks have
// written is read through TMA only behind fence_proxy_async_global.
void wait_flag(const Signals& flags, const IndexOperand& index, Compare compare,
               const IndexOperand& value, MemoryOrder order = {Semantics::acquire, Scope::system},
               SourceLocation where = here());

// Elements of vectors of i32, as load_index and atomic_add without an order (which are weak, and
// relaxed of scope gpu): weak, relaxed or acquire; weak, relaxed or release; all but weak.
Index load_index(const TensorView& element, MemoryOrder order, SourceLocation where = here());
void store_index(const TensorView& element, const IndexOperand& value, MemoryOrder order,
                 SourceLocation where = here());
Index atomic_add(const TensorView& element, const IndexOperand& value, MemoryOrder order,
                 SourceLocation where = here());
// As wait_flag above. CTAs that wait for words in this rank alone, such as a Kernel::workspace's,
// wait for each other: such a kernel is launched cooperatively, with at most as many CTAs as run at
// once.
void wait_flag(const TensorView& element, Compare compare, const IndexOperand& value,
               MemoryOrder order, SourceLocation where = here());

// Elements of global memory that others access meanwhile, in this rank or in another one
// (Tensor::at), as tiles; an element alone is a tile {1}. One lane accesses each element, at once,
// and each of these accesses has the order: weak, relaxed or acquire; weak, relaxed or release;
// relaxed or release; all but weak. `red` and `atom_add` take f32, f16, bf16, i32, u32 and i64, of
// whatever is no input. Two elements of 16 bits that a lane has side by side are added by one
// instruction where both exist and the first lies at a multiple of 4 bytes.
Tile ld(const TensorView& from, MemoryOrder order, SourceLocation where = here());
void st(const TensorView& to, const TileOperand& tile, MemoryOrder order,
        SourceLocation where = here());
// Adds; integers modulo 2^32 or 2^64.
void red(const TensorView& to, const TileOperand& tile, MemoryOrder order,
         SourceLocation where = here());
// The same, and what was there before. No two warps may hold the same element.
Tile atom_add(const TensorView& to, const TileOperand& tile, MemoryOrder order,
              SourceLocation where = here());

// Where all CTAs of the grid meet: who has come through knows what all warps of the role have done
// before they came, in every CTA. They come together, as often as each other, in one role that all
// CTAs have; all CTAs have to run at once, so that the launch is cooperative. `turn` counts these
// barriers, over the launches too: kernel.epoch() where a launch has one, and
// n * (kernel.epoch() - 1) + i, for i = 1 to n, where it has n of them. What threads have written
// is read through TMA only behind fence_proxy_async_global.
class GridBarrier {
 public:
  GridBarrier(Kernel& kernel, const std::string& name, SourceLocation where = here());
  void sync(const IndexOperand& turn, SourceLocation where = here()) const;

 private:
  Signals arrivals_;
};

// The same for the CTAs of all ranks.
class RankBarrier {
 public:
  RankBarrier(Kernel& kernel, const std::string& name, SourceLocation where = here());
  void sync(const IndexOperand& turn, SourceLocation where = here()) const;

 private:
  Signals arrivals_;  // in this rank
  Signals ranks_;     // which have come
  Index rank_;
  Dim count_;
};

// Orders what this thread did and knows of before what it does next, for the threads of the scope.
void fence(Scope scope, SourceLocation where = here());
// As fence_proxy_async, of global memory: between what threads write there and TMA's copies.
void fence_proxy_async_global(SourceLocation where = here());

}  // namespace tilewright
