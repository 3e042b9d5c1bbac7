#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "ir/program.h"
#include "library/program_simulation.h"
#include "tilewright/library.h"

namespace tilewright::test {

// An operation of several kernels on a simulated sm_90a with one multiprocessor, twice.
inline void simulate_on_one_multiprocessor(library::ProgramWorkload& work) {
  const ir::Program recorded =
      build_program(*work.workload.kernel,
                    choose_schedule(*work.workload.kernel, work.workload.options, "sm_90a"))
          .finish();
  const std::vector<ir::Kernel> machine = library::machine_forms(recorded, "sm_90a").front();
  simulator::MachineOptions options;
  options.multiprocessors = options.resident = 1;
  work.program = library::bind_workload(recorded, work.workload, options.multiprocessors);
  ir::add_owned(work.program, machine);
  library::ProgramTensors after;
  const simulator::MachineReport report =
      library::simulate_program(work.program, machine, work.before(), &after, options, 2);
  EXPECT_TRUE(report.ok());
  work.take(after);
}

}  // namespace tilewright::test
