#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "driver/fuzz/recipe.h"

namespace tilewright::driver::fuzz {

// What of the compiler a recipe's kernel comes to, as hashes: passes that change it, operations of
// the scheduled and of the machine form with what they stand in and how their operands lie, and
// what it is refused for.
std::set<std::uint64_t> features_of(const Recipe& recipe);

// Random recipes, and changes to those that came to something new. The same calls make the same
// recipes.
class Guide {
 public:
  Recipe next(std::uint64_t seed);
  // To be called with each recipe, whatever came of it.
  void learn(const Recipe& recipe);
  std::size_t features() const { return known_.size(); }

 private:
  std::set<std::uint64_t> known_;
  std::vector<Recipe> kept_;
};

}  // namespace tilewright::driver::fuzz
