#pragma once

#include <algorithm>

#include "tilewright/hopper.h"
#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Blocks of keys as long as each other, of which the last wave leaves multiprocessors idle. Those
// of that wave are divided by steps, so that all multiprocessors end together: each has a long
// part, and what is left of all of them, their tails, is divided evenly among the idle ones.
class LastWave {
 public:
  static constexpr int kMostBlocks = 128;  // that are divided

  // `steps`: of a block.
  LastWave(const Dim& blocks, const Dim& steps) : steps_(steps) {
    const Dim last = blocks % multiprocessors(), idle = multiprocessors() - last,
              divisor = max(last, 1);
    const Dim places = min(idle, last * kMostPlaces);
    const Dim longest = ceil_div(steps * last + places * kStepsOfPart, max(last + places, 1));
    const Dim saved = max(steps - longest, 0);
    const Dim divides = min(saved / kLeastSaved, 1) * min(idle * kMostTails / divisor, 1) *
                        min(kMostBlocks / divisor, 1);
    blocks_ = last * divides;
    first_ = blocks - blocks_;
    tail_ = saved * divides;
    left_ = blocks_ * tail_;
    of_place_ = max(ceil_div(left_, max(places, 1)), 1);
    places_ = ceil_div(left_, of_place_);
  }

  const Dim& blocks() const { return blocks_; }
  // Numbers that are dealt: a block that is not divided each, then the places of tails, which have
  // most to add to sums, and the long parts.
  Dim count() const { return first_ + places_ + blocks_; }

  // A part of the block of keys of this number: the steps [first, last). `word` has which of the
  // divided ones it is, and in how many parts: 0 of one that is whole.
  struct Part {
    Index number, first, last, word;
  };
  struct Divided {
    Index block, parts;
  };
  static Divided divided(const Index& word) { return {word / kMostParts, word % kMostParts}; }

  // What is dealt as `number`: several parts, where a place has tails of several blocks.
  template <typename Body>
  void for_parts(const Index& number, const Body& body) const {
    const Index place = number - Index(first_), tail(max(tail_, 1));
    const Condition is_whole = place < 0, is_long = place >= Index(places_);
    const Condition is_one = is_whole || is_long;
    const Index begin = place * of_place_, end = min(begin + of_place_, left_);
    const Index from = select(is_whole, place, select(is_long, place - places_, begin / tail));
    const Index until = select(is_one, from + 1, ceil_div(end, tail));
    for (Index i : range(until - from)) {
      const Index block = from + i, before = block * tail, longest(steps_ - tail_);
      const Index places = (before + tail - 1) / of_place_ - before / of_place_ + 1;
      body(Part{first_ + block, select(is_one, 0, longest + max(begin - before, 0)),
                select(is_whole, steps_, longest + select(is_long, 0, min(end - before, tail))),
                select(is_whole, 0, block * kMostParts + places + 1)});
    }
  }

 private:
  // A part costs about two steps, since keys and values are loaded. With its sums, which are
  // written and read, a gain of less than so many steps is none (docs/log).
  static constexpr int kStepsOfPart = 2, kLeastSaved = 10;
  static constexpr int kMostPlaces = 4;  // for the tail of a block: each adds to the same sums
  static constexpr int kMostTails = 2;   // of so many blocks, for one place
  static constexpr int kMostParts = 8;   // of a block, and 1

  Dim steps_, blocks_ = 0, first_ = 0, tail_ = 0, left_ = 0, of_place_ = 1, places_ = 0;
};

}  // namespace tilewright::kernels
