#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tilewright/asynchronous.h"
#include "tilewright/function_ref.h"

// The explicit level for sm_100a and sm_110a: what any GPU with asynchronous copies has, tensor
// memory, and products whose results lie there. Raises Error(usage) at the caller's line for what
// there is no product of, and in kernels whose target has no tensor memory. What is said here to be
// ordered is: each function prints the fences that it needs. Who else may use the same columns
// meanwhile is the author's to order, and the simulator reports it.
namespace tilewright {

// Whose tensor memory it is, and whose products write it: of one CTA, or of a pair of CTAs, which
// are 0 and 1, 2 and 3, ... of a cluster. All TensorMemory of a kernel says the same. Both CTAs of
// a pair allocate and free together. The first one issues products: each CTA has 128 rows of a and
// of the result, and half of b's columns, at the same places of its own memory.
enum class CtaGroup { one, pair };

// Whether this CTA is the one of its pair that issues products.
Condition is_first_of_pair(SourceLocation where = here());

// Columns of tensor memory, 32 bits in each of 128 lanes.
class TensorColumns {
 public:
  // `count` of them from `first` on.
  TensorColumns columns(const IndexOperand& first, int count) const;
  // The same for what has 64 rows: those have 16 of each 32 lanes, the first of them (0) or the
  // others (1).
  TensorColumns half(const IndexOperand& which) const;
  int count() const { return count_; }
  int rows() const { return rows_; }

 private:
  friend class TensorMemory;
  friend class TensorTracing;
  Handle memory_, address_;
  int count_ = 0;
  int rows_ = 128;
};

// Columns that a CTA takes together, a power of two of them: those of all TensorMemory of a kernel
// fit a multiprocessor's, and are given back before the CTA ends.
class TensorMemory {
 public:
  TensorMemory(Kernel& kernel, std::string name, int columns, SourceLocation where = here())
      : TensorMemory(kernel, std::move(name), columns, CtaGroup::one, where) {}
  TensorMemory(Kernel& kernel, std::string name, int columns, CtaGroup group,
               SourceLocation where = here());
  // By a role of one warp, before anybody attaches. Waits for columns that another CTA holds.
  void allocate(SourceLocation where = here()) const;
  // In each role that uses the columns, behind a barrier that follows allocate.
  TensorColumns attach(SourceLocation where = here()) const;
  // By a role of one warp, behind a barrier that follows all uses.
  void free(SourceLocation where = here()) const;

 private:
  Handle memory_, address_;
  int columns_;
};

// The CTA allocates no more: another one may begin to. By a role of one warp.
void relinquish_tensor_memory(SourceLocation where = here());

// to (+)= a b, by one thread, with a {128, k} and b {k, n} in shared memory and the f32 result in n
// columns: row i in lane i. Of a half of them a has 64 rows, and row i is in the i % 16th lane that
// the half has of the i / 16th 32. Of a pair b has half of the result's columns, and a may have 64
// rows in each CTA: then row i has the first half of the result's columns in lane i, and the second
// half in lane 64 + i of the same columns. Adds to what is there where the condition holds. It is
// over behind a wait for a commit (Ring::commit, Ring::release_behind_products). Products that
// follow each other on the same columns, with the same shape, are in order.
void mma(const TensorColumns& to, const SharedView& a, const SharedView& b,
         const Condition& accumulate, SourceLocation where = here());
// The same with a in tensor memory, stored there as a tile of b's dtype.
void mma(const TensorColumns& to, const TensorColumns& a, const SharedView& b,
         const Condition& accumulate, SourceLocation where = here());

// Where the thread that issues products waits for them itself: before a product that writes what an
// earlier one reads, or has another shape on its columns.
class ProductBarrier {
 public:
  ProductBarrier(Kernel& kernel, std::string name, SourceLocation where = here());
  // Until all products are over that the thread has issued. By one role, of one warp.
  void wait(SourceLocation where = here());

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Which phase a role's first wait is for: the barrier's own first one, or the one before, which is
// over as the kernel begins. The latter is for who fills what is empty at first.
enum class FirstPhase { own, before };

// A hand-over that is no ring. Its phases follow each other, and each is over behind so many
// arrivals. Every wait of a role is for the phase behind that of its last one.
class Barrier {
 public:
  // `arrivals`: of each phase, by all who arrive.
  Barrier(Kernel& kernel, std::string name, int arrivals, SourceLocation where = here());
  // One for each warp that comes here.
  void arrive(SourceLocation where = here()) const;
  // One, when all products are over that the thread has issued. By a role of one warp.
  void commit(SourceLocation where = here()) const;
  // One, and the phase is not over before what `loads` copies (tma_load) is there. By one warp.
  void load(FunctionRef<void()> loads, SourceLocation where = here()) const;
  void wait(FirstPhase first = FirstPhase::own, SourceLocation where = here()) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Between tensor memory and the registers of a warpgroup: of an f32 tile of as many rows as the
// columns have, as a product's result lies. What is loaded is there at once, and the columns may
// then be written again.
Tile load(const TensorColumns& from, SourceLocation where = here());
// Of 32 bits a column: a tile of a 16-bit dtype has two elements in each.
void store(const TensorColumns& to, const Tile& tile, SourceLocation where = here());

// Places in the grid that a cluster works on: its own, then those of clusters that have not
// started, one by one as the hardware gives them up (cluster launch control). All of the grid's
// places are worked on once, by as many clusters as run at once: Kernel::ctas says as many CTAs as
// there are tiles, times the cluster's.
class GridTiles {
 public:
  GridTiles(Kernel& kernel, std::string name, Stages stages, SourceLocation where = here());
  // By a role of one warp, in each CTA: asks for one place after the other until there is none.
  void ask(SourceLocation where = here());
  // In every other role that works on tiles: calls `body` with the index of the place's first CTA.
  void each(FunctionRef<void(const Index& cta)> body, SourceLocation where = here());

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tilewright
