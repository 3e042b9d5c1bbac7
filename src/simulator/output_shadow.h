#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ir/ir.h"
#include "simulator/tensor_access.h"
#include "support/arguments.h"

namespace tilewright::simulator {

// Which block of the grid stores each element of a launch's `out` tensors. Blocks run in any order
// and at the same time, so that no two may store one element; and what none stores keeps whatever
// was in memory.
class OutputShadow {
 public:
  // `concurrent`: blocks are run by several threads.
  OutputShadow(const ir::Kernel& kernel, const Arguments& arguments, bool concurrent);

  // A block stores `extents` of the box. Raises where another block has stored an element of it.
  void store(const ir::Operation& operation, const Box& box,
             const std::vector<std::int64_t>& extents, std::int64_t block);
  // What a launch on the virtual GPU has stored: MachineReport::written.
  void store_written(const std::vector<std::vector<std::uint16_t>>& written);
  // Raises for the first element that no block has stored, of tensors whose stores the sizes alone
  // decide. `has_blocks`: the grid is not empty.
  void check_complete(bool has_blocks) const;

 private:
  struct Output {
    const ir::Parameter* parameter = nullptr;
    const TensorArgument* tensor = nullptr;
    std::vector<std::int64_t> strides;  // of the elements below, which lie row by row
    std::vector<const ir::Operation*> stores;
    bool by_sizes = true;  // which elements are stored follows from sizes alone
    // The block's number from 1; 0: nobody.
    std::unique_ptr<std::atomic<std::uint32_t>[]> blocks;
    std::int64_t elements = 1;
  };
  [[noreturn]] void refuse_second(const Output& output, const ir::Operation& operation,
                                  std::int64_t element, std::int64_t block,
                                  std::int64_t before) const;

  const ir::Kernel& kernel_;
  const bool concurrent_;
  std::map<ir::ValueId, Output> outputs_;
};

}  // namespace tilewright::simulator
