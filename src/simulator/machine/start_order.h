#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "support/random.h"

namespace tilewright::simulator {

// The numbers from 0 to count - 1, in a random order or in theirs, drawn one by one: memory grows
// with how many are drawn, since a grid may have 2^31 CTAs.
class StartOrder {
 public:
  // Takes its numbers out of `random` at once, so that what comes next there depends on no draw.
  StartOrder(std::int64_t count, Random& random, bool shuffled = true)
      : all_(count), count_(count), shuffled_(shuffled), random_(random) {
    random.skip(static_cast<std::uint64_t>(std::max<std::int64_t>(count - 1, 0)));
  }
  std::int64_t count() const { return count_; }
  std::int64_t draw() {
    if (!shuffled_) return all_ - count_--;
    const std::int64_t at = count_ > 1 ? random_.below(count_) : 0;
    --count_;
    // The last one takes the place of the one that is drawn.
    const std::int64_t last = take(count_);
    return at == count_ ? last : std::exchange(moved_.try_emplace(at, at).first->second, last);
  }

 private:
  std::int64_t take(std::int64_t at) {
    const auto found = moved_.find(at);
    if (found == moved_.end()) return at;
    const std::int64_t value = found->second;
    moved_.erase(found);
    return value;
  }

  std::int64_t all_, count_;
  bool shuffled_;
  Random random_;
  std::unordered_map<std::int64_t, std::int64_t> moved_;  // places that hold another number
};

}  // namespace tilewright::simulator
