#pragma once

#include "simulator/machine/machine.h"

namespace tilewright::simulator {

// Thrown when a fault ends the run.
struct Stopped {};

class FaultLog {
 public:
  FaultLog(MachineReport& report, bool stop_at_first)
      : report_(report), stop_at_first_(stop_at_first) {}
  // The same kind at the same two places is kept once.
  void add(Fault fault);

 private:
  MachineReport& report_;
  bool stop_at_first_;
};

}  // namespace tilewright::simulator
