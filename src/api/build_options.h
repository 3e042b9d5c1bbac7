#pragma once

#include "compiler/build.h"
#include "compiler/watch_report.h"
#include "simulator/machine/machine.h"
#include "support/diagnostic.h"
#include "tilewright/compile.h"

namespace tilewright {

inline compiler::BuildOptions build_options(const CompileOptions& options) {
  compiler::BuildOptions how;
  how.machine.numerics = options.numerics;
  how.machine.checked = options.checked;
  how.machine.watched = compiler::watch_seconds().has_value();
  how.machine.schedule = options.schedule;
  how.allow_stack_frame = options.allow_stack_frame;
  how.afresh = options.build_afresh;
  how.delays = compiler::delays_seed();
  return how;
}

inline simulator::MachineOptions simulated_machine(const CompileOptions& options,
                                                   SourceLocation where) {
  if (options.multiprocessors < 1) {
    Diagnostic(where, "compile: " + std::to_string(options.multiprocessors) + " multiprocessors")
        .fix("set CompileOptions::multiprocessors to 1 or more")
        .raise();
  }
  simulator::MachineOptions machine;
  machine.multiprocessors = options.multiprocessors;
  machine.max_operations = options.max_operations;
  return machine;
}

}  // namespace tilewright
