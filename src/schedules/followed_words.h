#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "schedules/followed_scalars.h"

namespace tilewright::schedules {

// A word in memory that others count up.
using FollowedWord =
    std::pair<ir::ValueId, std::optional<std::int64_t>>;  // the tensor, its element

// Waits of a CTA for its turn: those before it have added to a sum, one after the other, and it is
// the next one to add.
class TurnsOfSums {
 public:
  // Once a role: it knows what it has added to itself.
  class OfRole {
   public:
    explicit OfRole(TurnsOfSums& of_cta) : of_cta_(of_cta) {}

    void add(const FollowedWord& word) {
      added_.insert(word);
      of_cta_.added_.insert(word);
    }
    // Until so many have added. Who has added before it waits meets the others there.
    void wait(const FollowedWord& word, std::int64_t others) {
      if (added_.count(word) == 0) of_cta_.waits_.push_back({word, others});
    }

   private:
    TurnsOfSums& of_cta_;
    std::set<FollowedWord> added_;
  };

  // How many come before this CTA's first addition. As far behind the first of them as it begins,
  // it stays, so that its other turns cost nothing more. Who waits and adds nothing has no turn.
  std::int64_t first() const {
    for (const auto& [word, others] : waits_) {
      if (added_.count(word) != 0) return others;
    }
    return 0;
  }

 private:
  std::vector<std::pair<FollowedWord, std::int64_t>> waits_;
  std::set<FollowedWord> added_;  // by any of its roles
};

}  // namespace tilewright::schedules
