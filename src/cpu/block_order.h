#pragma once

#include <cstdint>
#include <vector>

#include "cpu/program.h"

namespace tilewright::cpu {

class Engine;

// Which blocks of a program take longer than others, by their loops outside of other loops. The
// program must outlive it.
class BlockOrder {
 public:
  explicit BlockOrder(const Program& program);

  // Whether the rounds of a loop depend on the block.
  bool is_uneven() const { return is_uneven_; }
  // All blocks below the count, the longest first: the last threads to end then end together.
  // Nothing where none is long beside what each thread does.
  std::vector<std::int64_t> longest_first(Engine& engine, std::int64_t count,
                                          unsigned threads) const;

 private:
  std::vector<const Operation*> scalars_;  // what loops' ends are computed by, in order
  std::vector<const For*> loops_;
  bool is_uneven_ = false;
};

}  // namespace tilewright::cpu
