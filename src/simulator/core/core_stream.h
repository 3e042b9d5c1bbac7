#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "analysis/access_bounds.h"
#include "ir/binding.h"
#include "ir/core_window.h"
#include "ir/ir.h"
#include "support/arguments.h"
#include "target/core.h"
#include "target/core_operands.h"

// What a sequencer issues. It waits for no unit, so that its instructions are known before any of
// them is executed.
namespace tilewright::simulator {

// A memory of the kernel.
struct CorePlace {
  const ir::Operation* operation = nullptr;
  const target::CoreSpace* space = nullptr;
  int space_number = 0;  // in the record
  target::Matrix matrix;
  std::int64_t stages = 0, offset = 0, stage_bytes = 0;
};

struct CoreWindowAt {
  int place = 0;
  std::int64_t stage = 0, row = 0, column = 0;
  ir::Extent2 lying;
  bool transposed = false;
  ir::Extent2 seen() const { return transposed ? ir::transposed(lying) : lying; }
};

struct CoreNumber {
  std::int64_t whole = 0;
  float real = 0;
};

struct CoreItem {
  enum class Kind : std::uint8_t { work, set, wait, barrier };
  Kind kind = Kind::work;
  const ir::Operation* operation = nullptr;
  int unit = 0;                       // in the record
  std::vector<CoreWindowAt> windows;  // in the order of the operands
  std::vector<CoreNumber> numbers;    // scalar operands: of a function one for each operand
  std::vector<std::int64_t> bounds;   // of a tensor's part: the start of each axis, then the limits
  int event = 0;                      // in the record
  std::int64_t id = 0;
};

// What all sequencers of a launch share.
struct CoreLaunch {
  CoreLaunch(const ir::Kernel& kernel, const Arguments& arguments, std::int64_t multiprocessors);

  const ir::Kernel& kernel;
  const Arguments& arguments;
  const target::Core& core;
  const target::CoreOperands operands;
  ir::Binding binding;
  std::int64_t blocks = 0;
  std::vector<CorePlace> places;
  std::vector<int> place_of;                     // by value; -1: no memory
  std::vector<const TensorArgument*> tensor_of;  // by value
  std::vector<double> scalar_of;                 // by value: of scalar parameters
  // Of parts of tensors that integers of the launch place.
  std::map<const ir::Operation*, std::vector<analysis::AxisCheck>> checks;
};

// An element that a sequencer has read, as an index.
struct CoreIndexRead {
  const ir::Operation* by = nullptr;
  const std::byte* place = nullptr;
};
struct CoreIssued {
  std::vector<CoreItem> items;
  std::vector<CoreIndexRead> reads;
};

// Of one instance of a role's sequencer, in the block of that number. No more than so many.
CoreIssued issued_by(const CoreLaunch& launch, const ir::Operation& role, std::int64_t block,
                     std::int64_t instance, std::int64_t most);

}  // namespace tilewright::simulator
