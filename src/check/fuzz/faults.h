#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "simulator/faults/fault_kinds.h"
#include "support/random.h"

namespace tilewright::checks::fuzz {

// What a compiler could get wrong, planted in what a right one made: the fuzzer has to notice.
struct SeededFault {
  const char* name;
  const char* description;
  ir::Form form;  // tile: before the schedule is made; machine: in what ships
  simulator::SeedFaults seed;

  // At a place that is drawn; false where the kernel has none.
  bool plant(ir::Kernel& kernel, Random& random) const;
};

const std::vector<SeededFault>& seeded_faults();

// How long the fuzzer took to notice one.
struct TimeToKill {
  const SeededFault* fault = nullptr;
  bool killed = false;
  std::int64_t kernels = 0;  // that were made
  std::int64_t planted = 0;  // of these with such a place
  std::uint64_t seed = 0;    // of the kernel that showed it
  double seconds = 0;
  std::string how;
};

// Of each fault, over kernels of consecutive seeds, at most `patience` of them with it.
std::vector<TimeToKill> time_to_kill(std::uint64_t seed, std::int64_t patience,
                                     std::string_view machine);

}  // namespace tilewright::checks::fuzz
