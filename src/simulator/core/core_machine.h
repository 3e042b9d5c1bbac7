#pragma once

#include "ir/ir.h"
#include "simulator/machine/machine.h"
#include "support/arguments.h"

namespace tilewright::simulator {

// An instruction of a core's unit, on the axis of modelled time.
struct CoreSpan {
  const ir::Operation* operation = nullptr;
  std::string unit;  // of which core, and its number where that has several: "V 1 of core 0"
  std::int64_t block = 0;
  std::int64_t start = 0, busy_until = 0, end = 0;
};

// The machine form of a kernel for a core with explicit memories. The sequencers issue, and the
// units work beside each other: a seed draws who goes on, and when what was started is over. An
// instruction's accesses are held against all others by what is known to be over when it starts, so
// that two in no order are a fault in whatever order they happen. `arguments` have strides, and
// what the runtime owns.
void run_core(const ir::Kernel& kernel, const Arguments& arguments, const MachineOptions& options,
              MachineReport& report);

}  // namespace tilewright::simulator
