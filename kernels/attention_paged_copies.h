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

  // Brings some slots to rows of the stage.
  using Load = std::function<void(const PageSlots& at, const Slot& stage, int row, int rows)>;
  // Blocks first to last - 1 of the item's keys, each a stage, whose number has a bit for each copy
  // without a page. The table is read a block ahead, so that nobody waits for it.
  void produce(Ring& ring, const PagedWork& work, const Index& first, const Index& last,
               const Load& load) const;
  // Scores of keys that have a page, of a stage of this number.
  Tile without(const Tile& scores, const Index& missing) const;

 private:
  Block keys_of(const PagedWork& work, const Index& j, int i) const;
  Index page_of(const PagedWork& work, const Index& j, int i) const;
  const PagedParameters& p_;
  int keys_, rows_;  // of a block, of a copy
};

}  // namespace tilewright::kernels
