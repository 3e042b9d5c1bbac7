#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "check/shrunken_sizes.h"
#include "ir/program.h"
#include "library/program_simulation.h"
#include "tilewright/library.h"

namespace tilewright::test {

// An operation of several kernels on a simulated GPU with one multiprocessor, or with one for each
// CTA of a cluster, twice.
inline void simulate_on_one_multiprocessor(library::ProgramWorkload& work,
                                           const char* target = "sm_90a") {
  const ir::Program recorded =
      build_program(*work.workload.kernel,
                    choose_schedule(*work.workload.kernel, work.workload.options, target))
          .finish();
  const std::vector<ir::Kernel> machine = library::machine_forms(recorded, target).front();
  simulator::MachineOptions options;
  options.multiprocessors = options.resident = checks::largest_cluster(machine);
  work.program = library::bind_workload(recorded, work.workload, options.multiprocessors);
  ir::add_owned(work.program, machine);
  library::ProgramTensors after;
  const simulator::MachineReport report =
      library::simulate_program(work.program, machine, work.before(), &after, options, 2);
  EXPECT_TRUE(report.ok()) << report.faults.front().message;
  work.take(after);
}

}  // namespace tilewright::test
