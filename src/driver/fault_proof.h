#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "driver/workload.h"
#include "ir/ir.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"

// Whether the simulated GPU finds the faults that are seeded into a kernel.
namespace tilewright::driver {

struct ProofOptions {
  std::uint64_t seed = 0;      // of the first schedule
  std::int64_t schedules = 8;  // for each mutant that is not caught before
  std::int64_t launches = 2;   // one after the other, in each schedule
  unsigned threads = 0;        // 0: one for each core
};

struct MutantResult {
  enum class Verdict : std::uint8_t {
    caught,
    rejected,    // by the verifier, or before the first instruction
    equivalent,  // by a rule (Mutant::equivalent); its runs are clean
    unreached,   // these sizes never execute the operation
    survived,
  };
  const simulator::FaultKind* kind = nullptr;
  simulator::Mutant mutant;
  Verdict verdict = Verdict::survived;
  simulator::Fault fault;  // caught: "mismatch" is a wrong result. rejected: the refusal
  std::uint64_t seed = 0;  // of the schedule that shows it
  bool right_class = false;
  bool both_lines = false;
};

// Runs every mutant of the machine form on the workload until a fault shows, on as many
// multiprocessors as a cluster has CTAs. Same options, same results, whatever the threads. Raises
// when the kernel itself is not clean. `advance` is told of each mutant that is done, from any
// thread, and first of how many there are.
std::vector<MutantResult> prove_by_faults(const ir::Kernel& machine, const Workload& workload,
                                          const ProofOptions& options,
                                          const std::function<void(std::int64_t)>& begin = {},
                                          const std::function<void()>& advance = {});

// "name=value" for the sizes that `settings` leave open, as small as they may be for the pipelines
// of the machine form to wrap around: stages + 1 steps of each contraction, two blocks of each
// other length, two heads, with tails. Needs the kernel as the options build it.
std::vector<std::string> shrunken_sizes(const LibraryKernel& kernel,
                                        const std::vector<std::string>& settings,
                                        const OptionValues& options, const ir::Kernel& machine);

}  // namespace tilewright::driver
