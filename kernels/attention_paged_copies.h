#pragma once

#include <functional>

#include "kernels/attention_paged_parameters.h"
#include "tilewright/hopper.h"

// How schedules of sm_90a bring pages: a block of keys is a stage of a ring, in copies of
// neighbouring slots of one page each.
namespace tilewright::kernels {

class PageCopies {
 public:
  // Of a copy's rows in shared memory, which begin at multiples of them.
  static constexpr int kRowUnit = 8;
  // Blocks of so many keys.
  PageCopies(const PagedParameters& p, int keys);
  int count() const { return keys_ / rows_; }
  int rows() const { return rows_; }  // of a copy

  // The number that the table has for the page that the i-th copy of block j takes keys of.
  Index listed(const Index& sequence, const Sequence& keys, const Index& j, int i) const;
  // Where these lie; behind the sequence's last page, nothing of that page.
  PageSlots slots(const Sequence& keys, const Index& j, int i, const Index& listed) const;
  // The bit of the i-th copy where it has no page.
  static Index missing(const Index& listed, int i) { return select(listed == -1, 1 << i, 0); }

  // Brings some slots to rows of the stage.
  using Load = std::function<void(const PageSlots& at, const Slot& stage, int row, int rows)>;
  // Blocks first to last - 1 of the item's keys, each a stage, whose number has a bit for each copy
  // without a page. The table is read a block ahead, so that nobody waits for it.
  void produce(Ring& ring, const PagedWork& work, const Index& first, const Index& last,
               const Load& load) const;
  // Scores of keys that have a page, of a stage of this number.
  Tile without(const Tile& scores, const Index& missing) const;

 private:
  Index first_key(const Index& j, int i) const { return j * keys_ + i * rows_; }
  const PagedParameters& p_;
  int keys_, rows_;  // of a block, of a copy
};

}  // namespace tilewright::kernels
