#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "library/accuracy.h"
#include "library/program_simulation.h"
#include "library/workload.h"
#include "simulator/machine/machine.h"

// Whether what the simulated GPU calls clean is so on a GPU, whatever its timing.
namespace tilewright::checks {

struct StressOptions {
  std::uint64_t seed = 0;                    // of the first simulated schedule, and of the delays
  std::int64_t schedules = 2;                // simulated, of each workload
  std::int64_t launches = 2;                 // one after the other, in each
  std::int64_t runs = 20;                    // with delays on the GPU, of each workload and grid
  std::chrono::milliseconds patience{5000};  // a launch that takes longer hangs
  // Is told what each workload is held against.
  std::function<void(const library::Workload&, const library::Reference&)> told = {};
};

// What the verifier says against the kernel, such as a mutant; empty where nothing.
std::string why_not_well_formed(const ir::Kernel& machine);

// The first fault that the simulated GPU shows, on as many multiprocessors as a cluster has CTAs;
// "mismatch" is a wrong result. No kind: none.
simulator::Fault simulate_workloads(const ir::Kernel& machine,
                                    std::vector<library::Workload>& workloads,
                                    const StressOptions& options);

// The same of a program at some sizes, of whose kernels `machine` has the forms.
struct StressedProgram {
  library::ProgramWorkload made;
  std::int64_t multiprocessors = 0;  // that it is bound to, and simulated on
};
simulator::Fault simulate_programs(const std::vector<ir::Kernel>& machine,
                                   std::vector<StressedProgram>& programs,
                                   const StressOptions& options);

struct StressReport {
  std::int64_t plain_runs = 0, delayed_runs = 0;
  // Runs whose outputs are not, bit by bit, those of the kernel's first run, or not the float64
  // reference's within the tolerance. Sums in any order may have other bits (any_order.h).
  std::int64_t plain_mismatches = 0, delayed_mismatches = 0;
  std::string first_mismatch;
  std::string error;  // of the assembler or the driver, which ends the runs
  bool ok() const { return plain_mismatches + delayed_mismatches == 0 && error.empty(); }
};

// Builds `machine` as it is and with injected delays, and runs both on the GPU that is here: with
// as many CTAs as it has multiprocessors, and with one cluster, which comes to every tile. Outputs
// are held against those of `original`, which is `machine` itself unless that is a mutant of it.
//
// A launch that hangs cannot be ended from within: `hung` is called with what has been found and
// must end the process.
StressReport stress_on_gpu(const ir::Kernel& original, const ir::Kernel& machine,
                           std::vector<library::Workload>& workloads, const StressOptions& options,
                           const std::function<void(const StressReport&, bool delayed)>& hung);

// The same of the program that was recorded: on as many multiprocessors as each of `programs` is
// bound to, and as there are. Scratch memory is poisoned before each run.
StressReport stress_on_gpu(const ir::Program& recorded, const std::vector<ir::Kernel>& original,
                           const std::vector<ir::Kernel>& machine,
                           std::vector<StressedProgram>& programs, const StressOptions& options,
                           const std::function<void(const StressReport&, bool delayed)>& hung);

// Whether both forms, as they are and with delays, assemble for the architecture; needs no GPU.
void assemble_with_delays(const ir::Kernel& machine, const std::string& arch, std::uint64_t seed);

}  // namespace tilewright::checks
