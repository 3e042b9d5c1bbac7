#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// A tensor of which each step of a loop loads one block, whose place is a number that the step
// loads, such as a page's.
struct NumberedBlock {
  std::string tensor;
  SourceLocation loop, block, number;
  int together = 1;   // of several steps, where passes/join_steps.h has joined them
  std::string alone;  // why it has not
};
// Of the tile form of a target, in its order.
std::vector<NumberedBlock> numbered_blocks(const ir::Kernel& kernel);

// The steps of a loop that load such blocks, and how many of them may be joined.
struct NumberedSteps {
  struct Alone {
    const ir::Operation* load;
    std::string why;
  };
  std::vector<const ir::Operation*> numbers;  // that a step loads
  std::vector<const ir::Operation*> loads;    // of the blocks that several steps may load together
  std::set<const ir::Operation*> scalars;     // of which places are computed, numbers among them
  std::vector<Alone> others;                  // loads of blocks that each step loads for itself
  int together = 1;
};

class FindNumberedSteps {
 public:
  // Holds while the kernel's blocks are not changed.
  explicit FindNumberedSteps(const ir::Kernel& kernel);
  NumberedSteps of(const ir::Operation& loop) const;
  const std::vector<const ir::Operation*>& definitions() const { return definitions_; }

 private:
  std::string why_alone(const ir::Operation& load, const std::set<ir::ValueId>& varying,
                        const std::set<ir::ValueId>& numbered) const;
  bool is_input(const ir::Operation& access) const;
  bool is_for_products(const ir::Operation& load) const;
  std::int64_t bytes_of(const ir::Operation& load) const;

  const ir::Kernel& kernel_;
  const std::vector<const ir::Operation*> definitions_;
  std::vector<std::vector<const ir::Operation*>> readers_;
};

}  // namespace tilewright::analysis
