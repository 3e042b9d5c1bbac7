#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/core/core_functions.h"
#include "simulator/core/core_global.h"
#include "simulator/core/core_memory.h"
#include "simulator/core/core_stream.h"
#include "simulator/machine/fault_log.h"

namespace tilewright::simulator {

// Modelled time of what a unit does: how long it is busy, and how long its result is on the way.
struct CoreCycles {
  std::int64_t busy = 0, start = 0;
  std::int64_t conflicts = 0;  // of the busy ones, in which operands waited for each other's banks
  bool is_short = false;       // less than makes a move efficient
};

// What the units of one block do: their accesses, and what comes of them.
class CoreWork {
 public:
  CoreWork(const CoreLaunch& launch, CoreGlobal& global, std::int64_t block, std::size_t queues,
           FaultLog& log);

  CoreCycles cycles_of(const CoreItem& item) const;
  // Whether its windows are; else a fault.
  bool is_inside(std::int64_t instance, const CoreItem& item) const;
  // When it starts: faults for accesses that are in no order with another's. `instance`: of the
  // sequencer that has issued it.
  void order(std::int64_t instance, const CoreItem& item, const CoreAgent& by,
             const CoreClock& known);
  // All that it does, at an instant between its start and what waits for it.
  void execute(std::int64_t instance, const CoreItem& item);

 private:
  CoreMemories& memories(std::int64_t instance, const CoreWindowAt& window);
  const target::CoreProduct& product_of(const CoreItem& item) const;
  const target::CoreMove& move_of(const CoreItem& item) const;
  const target::CoreFunctions& functions_of(const CoreItem& item) const;
  std::int64_t summed(const CoreItem& item) const;
  // How many cycles it takes to read so many bytes of each operand that is as large as the largest.
  std::int64_t read_cycles(const CoreItem& item, std::int64_t bytes) const;
  // Of its result and its operands: it reads and writes element by element, in no order.
  void check_overlap(std::int64_t instance, const CoreItem& item);
  void load(std::int64_t instance, const CoreItem& item);
  void function(std::int64_t instance, const CoreItem& item, CoreValues& result);

  const CoreLaunch& launch_;
  const target::Core& core_;
  CoreGlobal& global_;
  const std::int64_t block_;
  FaultLog& log_;
  Origins origins_;
  std::vector<std::vector<CoreMemories>> own_;  // of each sequencer's instances
  CoreMemories shared_;
};

}  // namespace tilewright::simulator
