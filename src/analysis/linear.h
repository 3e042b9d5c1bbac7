#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// constant + per_index * index + the sum of factor * value over values from outside of the loop.
struct Linear {
  std::int64_t constant = 0, per_index = 0;
  std::map<ir::ValueId, std::int64_t> values;
};

// Which of a tile's rows count.
struct OwnRows {
  std::int64_t rows = 0;           // of the tiles in question; 0 for none
  ir::ValueId first = 0, end = 0;  // first to end - 1
};

// What is known of the integers in one loop, or, of none, in terms of scalars as they are: how they
// depend on the loop's index, and between which values the elements of a tile lie.
class LinearFacts {
 public:
  using Definitions = std::vector<const ir::Operation*>;
  LinearFacts(const ir::Kernel& kernel, const Definitions& definitions, const OwnRows& own);
  LinearFacts(const ir::Kernel& kernel, const Definitions& definitions, const OwnRows& own,
              const ir::Operation& loop);

  // Differences that are all >= 0 only where every element of the condition holds. Nothing for a
  // condition other than comparisons of integers, joined by `and`.
  std::optional<std::vector<Linear>> all_true(ir::ValueId condition) const;
  // A difference that is >= 0 only where no element of the comparison holds.
  std::optional<Linear> all_false(ir::ValueId comparison) const;

 private:
  struct Range {
    Linear least, greatest;
  };
  void note(const ir::Block& block);
  std::optional<Linear> linear(ir::ValueId value) const;
  std::optional<Range> range(ir::ValueId value, bool turned = false) const;

  const ir::Kernel& kernel_;
  const Definitions& definitions_;
  const OwnRows own_;
  const ir::ValueId index_;
  std::set<ir::ValueId> inside_;
};

}  // namespace tilewright::analysis
