#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "simulator/machine/shadow.h"

namespace tilewright::simulator {

// An access of a warp to a word of global memory.
struct WordStep {
  Access by;
  Epoch time = 0;  // of its agent, and what is known to have happened in time by then (timing.h)
  Clock known;
  bool takes = false;        // the kernel goes on with what it finds
  bool waits = false;        // until a comparison holds
  bool for_so_much = false;  // the comparison: the word is at least some number
  std::int64_t spare = 0;    // by how much it is more than that
  bool changes = false;
  bool adds = false;  // the change
  bool is_atomic_addition = false;
  std::int64_t added = 0;
  bool releases = false;    // hands on what the warp knows
  bool lanes_meet = false;  // the warp's waits before are over for all lanes
  // Of words that count who leaves (WordAccess): it leaves, and this is what the last one finds; or
  // it takes back, as the last one, what all have added.
  bool leaves = false, takes_back = false;
  std::int64_t last_finds = 0;
  bool looks() const { return takes || waits; }
};

// What the warps of a launch have done to a word, one after the other, and whether any of them
// would find something else there if others came earlier or later.
//
// Additions come to the same in any order. Who looks at the word finds what it finds in every
// order, if each change is ordered with it. And a wait for so much does where the changes are of
// two sorts:
// - without one of the needed ones, which add something and come first, the wait would not pass;
// - the others add something, are ordered behind all needed ones, and the wait has learnt nothing
// of
//   them: they have come behind it, or they release nothing.
//
// Take another schedule, whose steps so far are steps of this run (timing.h), in which the wait is
// over. What is ordered before it has come there too. Suppose that a needed change has not. Then
// none of the second sort has, since these are ordered behind it; and what is left is too little.
// So the wait finds there all that it needed here, and acquires all that it acquired here. Perhaps
// it acquires more: what is unordered there is unordered here. Nor does it wait without an end,
// since all that it needs comes and nothing takes away from it.
//
// So who has waited for so much knows that all that was done before the needed changes has happened
// in time, whatever these hand on: a relaxed one, too, comes behind what its warp did before.
// Within a cluster that orders steps of words with each other, and no other memory.
//
// Of a word that counts who leaves, the last one takes back what all have added. Who that is
// depends on the order; that somebody does, and what is left, does not. It is so where all add the
// same and compare with the same number; where everybody who has come leaves, with all lanes; and
// where nobody comes behind the last one.
class WordHistory {
 public:
  // Whether the step, which is the next one, might find something else in another order, or let an
  // earlier one do so. `is_ordered`: whether an earlier access is over for it.
  bool add(WordStep step, const std::function<bool(const WordStep&)>& is_ordered);
  // Of the last step, if it is a wait: what had happened when the changes came that it needs.
  Clock known_by_needed() const;
  // Of a step that leaves, once it is known.
  void set_last_finds(std::size_t step, std::int64_t value) { steps_[step].last_finds = value; }
  std::size_t count() const { return steps_.size(); }
  bool is_of_additions() const;  // atomic ones alone
  // Whether who leaves last makes a difference. At the launch's end.
  bool hangs_on_who_is_last() const;

 private:
  struct Step : WordStep {
    std::size_t needs = 0;       // of a wait: so many steps, of which it needs the changes
    std::size_t first_open = 0;  // the first earlier change that is not ordered before it
    bool leaves_for_all = true;  // its warp's earlier steps are over
  };
  bool commute(std::size_t number, const Step& later) const;
  std::vector<Step> steps_;
};

}  // namespace tilewright::simulator
