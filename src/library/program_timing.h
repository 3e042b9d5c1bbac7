#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "library/workload.h"
#include "simulator/machine/machine.h"

// How long operations take by the simulator's clock: control flow alone is executed, in the order
// of time.
namespace tilewright::library {

struct PredictedTime {
  double seconds = 0;
  std::int64_t sent = 0;  // bytes that leave a rank, of that which sends most
  double wire = 0;        // seconds that they take, in which copy engines copy so much
  std::vector<simulator::Fault> faults;
};

// Of so many runs in a row, a run. `machine` are the forms of the program's kernels, and `passed`
// the tensors that a caller passes, of which integers alone have values; none: all are zeros.
PredictedTime time_program(const ir::Program& bound, const std::vector<ir::Kernel>& machine,
                           const std::vector<HostTensor>& passed,
                           const simulator::MachineOptions& options, std::int64_t runs);
// Of a kernel that runs alone.
PredictedTime time_kernel(const ir::Kernel& machine, Workload& workload,
                          const simulator::MachineOptions& options);

}  // namespace tilewright::library
