#pragma once

#include <functional>
#include <vector>

#include "kernels/attention_paged_parameters.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"

// How schedules of sm_90a bring pages: a block of keys is a stage of a ring, in copies of
// neighbouring slots of one page each. Pages may follow each other in memory, in the order of the
// table: then one copy brings several, which the compiler sees to (passes/join_copies.h).
namespace tilewright::kernels {

// A block of keys, and what the table has for the pages of its copies.
struct ListedBlock {
  Index block;
  std::vector<Index> listed;
};

// Where the keys of a block's copies lie, and for each copy without a page a bit, 16 a number.
struct CopiedBlock {
  std::vector<PageSlots> copies;
  std::vector<Index> missing;
};

class PageCopies {
 public:
  // Of a copy's rows in shared memory, which begin at multiples of them.
  static constexpr int kRowUnit = 8;
  static constexpr int kMostAhead = 64;
  // Blocks of so many keys. Of more than `most_ahead` pages a block the warp that loads has no
  // registers to read the table a block ahead: the numbers are read in front of the copies.
  PageCopies(const PagedParameters& p, int keys, int most_ahead = kMostAhead);
  int count() const { return keys_ / rows_; }
  int rows() const { return rows_; }
  int numbers() const { return (count() + kBitsOfNumber - 1) / kBitsOfNumber; }
  // Pages are too small for copies: threads gather their slots.
  bool are_gathered() const { return rows_ % kRowUnit != 0; }

  // Brings slots to rows of a stage.
  using Load = FunctionRef<void(const PageSlots& at, int row, int rows)>;
  void load(const std::vector<PageSlots>& copies, const Load& load) const;

  // Calls `bring` for blocks first to last - 1 of a sequence's keys that some of the rows see, in
  // the given order, once where all of the block is there, and once where it may not be. The table
  // is read a block ahead, so that nobody waits for it.
  struct Blocks {
    Index sequence;
    Sequence keys;
    Mask mask;
    Block rows;
    Index first, last;
    std::function<Index(const Index& step)> block;  // of steps first to last - 1
  };
  using Bring = FunctionRef<void(const CopiedBlock& block)>;
  void each_block(const Blocks& blocks, const Bring& bring) const;
  void each_block(const PagedWork& work, const Index& first, const Index& last,
                  const Bring& bring) const;
  // Blocks first to last - 1 of an item's keys whose pages are gathered. For each, calls `bring`
  // with what is missing of it, and with what calls its argument for each run of `together` copies,
  // whose rows of the stage begin with the given one. Runs and numbers are loops of the kernel: all
  // copies one behind the other would be more instructions than their cache holds.
  using TakeRun = FunctionRef<void(const Index& row, const std::vector<PageSlots>& copies)>;
  using BringRuns = FunctionRef<void(const std::vector<Index>& missing,
                                     FunctionRef<void(const TakeRun&)> each_run)>;
  void each_gathered(const PagedWork& work, const Index& first, const Index& last, int together,
                     const BringRuns& bring) const;
  // Of copied ones, where each block is a stage, whose numbers are what is `missing`.
  using Fill = FunctionRef<void(const PageSlots& at, const Slot& stage, int row, int rows)>;
  void produce(Ring& ring, const PagedWork& work, const Index& first, const Index& last,
               const Fill& fill) const;
  // What of a stage has no page, and whether anything has none.
  std::vector<Index> missing_of(const Slot& stage) const;
  static Condition any(const std::vector<Index>& missing);
  // Scores of keys that have a page, of a stage's keys from `first` on.
  Tile without(const Tile& scores, const std::vector<Index>& missing, int first = 0) const;

 private:
  static constexpr int kBitsOfNumber = 16;
  // Of all copies of a sequence the first whose keys some of the rows see: none in front of a
  // window are read, nor what the table has for them.
  Index first_copy(const Mask& mask, const Block& rows, const Sequence& keys) const;
  // The number that the table has for the page that the i-th copy of block j takes keys of.
  Index listed(const Index& sequence, const Sequence& keys, const Index& first_copy, const Index& j,
               const Index& i) const;
  std::vector<Index> missing(const std::vector<Index>& listed) const;
  // Calls `bring` under the condition that all of the block is there, and where it may not be: then
  // keys may end in it, or pages be missing, and each page's copy says how much there is.
  void bring_block(const Sequence& keys, const ListedBlock& pages, const Bring& bring) const;
  // Where the keys of each copy lie; behind the sequence's last page, nothing of that page.
  std::vector<PageSlots> slots(const Sequence& keys, const ListedBlock& pages, bool whole) const;
  // The i-th copy of block j, up to where keys end.
  PageSlots slots_of_copy(const Sequence& keys, const Index& j, const Index& i,
                          const Index& listed) const;
  Index first_key(const Index& j, const Index& i) const { return j * keys_ + i * rows_; }
  Condition is_whole(const Sequence& keys, const ListedBlock& pages) const;
  const PagedParameters& p_;
  int keys_, rows_;  // of a block, of a copy of one page
  bool reads_ahead_;
};

}  // namespace tilewright::kernels
