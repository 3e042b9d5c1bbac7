#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "target/core.h"

namespace tilewright::passes {

// When memories of a core hold something. Units work beside each other, so that of two memories
// only those have lives one after the other that the same unit alone uses: what it does later comes
// later. A life begins with an instruction that writes all of the memory, and ends with the last
// one that uses it, in each turn of the loop around them.
class CoreLives {
 public:
  CoreLives(const ir::Kernel& kernel, const target::Core& core);
  // Whether the two are never alive at once, by their operations.
  bool may_share(const ir::Operation& a, const ir::Operation& b) const;

 private:
  // The blocks around an operation, from the kernel's on, and its number in the order of the text.
  struct Place {
    std::vector<const ir::Block*> blocks;
    std::size_t number = 0;
  };
  struct Access {
    const ir::Operation* operation = nullptr;
    Place place;
    bool reads = false, fills = false;
  };
  struct Life {
    std::string unit;  // empty: of several, or nobody knows when it begins
    std::vector<const ir::Block*> blocks;
    std::size_t first = 0, last = 0;
  };
  void walk(const ir::Block& block, std::vector<const ir::Block*> blocks);
  void note(const ir::Operation& operation, const Place& place);
  void begin_and_end(const ir::Operation& memory, const std::vector<Access>& accesses);
  bool comes_before(const Life& a, const Life& b) const;

  const ir::Kernel& kernel_;
  const target::Core& core_;
  std::size_t count_ = 0;
  std::map<ir::ValueId, const ir::Operation*> windows_;
  std::map<ir::ValueId, std::vector<Access>> accesses_;  // by memory
  std::map<const ir::Block*, const ir::Operation*> owners_;
  std::map<const ir::Operation*, std::size_t> ends_;    // the last number inside of each
  std::map<std::string, std::vector<Place>> barriers_;  // by unit
  std::map<const ir::Operation*, Life> lives_;          // by memory
};

}  // namespace tilewright::passes
