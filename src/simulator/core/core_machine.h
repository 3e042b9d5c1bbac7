#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "simulator/core/core_global.h"
#include "simulator/core/core_work.h"
#include "simulator/machine/fault_log.h"
#include "simulator/machine/machine.h"
#include "support/arguments.h"
#include "support/random.h"

namespace tilewright::simulator {

// An instruction of a core's unit, on the axis of modelled time.
struct CoreSpan {
  const ir::Operation* operation = nullptr;
  std::string unit;  // of which core, and its number where that has several: "V 1 of core 0"
  std::int64_t block = 0;
  std::int64_t start = 0, busy_until = 0, end = 0;
};

// The cores of a device, on the axis of modelled time: what launches find that others have left.
class CoreDevice {
 public:
  CoreDevice(const MachineOptions& options, Random& random, FaultLog& log, MachineReport& report)
      : options_(options), random_(random), log_(log), report_(report) {}
  // A launch that begins no earlier than that; its end. `arguments` have strides, and what the
  // runtime owns. `touched`: what it has accessed of its tensors, if anybody asks. A fault that
  // nothing can go on behind is thrown (Stopped).
  std::int64_t launch(const ir::Kernel& kernel, const Arguments& arguments, std::int64_t begins,
                      CoreTouched* touched = nullptr);
  // What the units of all launches did, into the report.
  void count() const;

  // What a unit was busy with.
  struct Span {
    int unit = 0;  // in the record
    std::int64_t from = 0, to = 0;
    CoreCycles cycles;
  };

 private:
  const MachineOptions& options_;
  Random& random_;
  FaultLog& log_;
  MachineReport& report_;
  const target::Core* core_ = nullptr;   // of the launches
  std::vector<std::int64_t> free_from_;  // of each core that has had a block
  std::vector<Span> spans_;
};

// The machine form of a kernel for a core with explicit memories. The sequencers issue, and the
// units work beside each other: a seed draws who goes on, and when what was started is over. An
// instruction's accesses are held against all others by what is known to be over when it starts, so
// that two in no order are a fault in whatever order they happen. `arguments` have strides, and
// what the runtime owns.
void run_core(const ir::Kernel& kernel, const Arguments& arguments, const MachineOptions& options,
              MachineReport& report);

// Raises for options that are of GPUs.
void check_core_options(const ir::Kernel& kernel, const MachineOptions& options);

}  // namespace tilewright::simulator
