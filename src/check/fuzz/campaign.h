#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/fuzz/oracle.h"

namespace tilewright::checks::fuzz {

struct CampaignOptions {
  std::uint64_t seed = 0;  // of the first kernel; the next ones have the next seeds
  std::int64_t count = 100;
  Target target = Target::simulator;
  std::string machine{ir::default_target()};  // that kernels are compiled for
  int threads = 0;                            // 0: as many as the machine has
  double patience = 120;                      // seconds that one kernel may take: longer is a hang
  bool first = false;                         // end with the first failure, as it is
};

struct Failure {
  std::uint64_t seed = 0;
  Verdict verdict;
  Recipe recipe;     // shrunken, unless the first failure ends it all
  Verdict shrunken;  // what is wrong with that
};

struct CampaignReport {
  std::int64_t kernels = 0, agreed = 0, undecided = 0;
  std::int64_t checked = 0;                      // elements
  std::map<std::string, std::int64_t> styles;    // of those that agreed
  std::map<std::string, std::int64_t> refusals;  // by message, numbers left out
  std::vector<Failure> failures;
  double seconds = 0;
};

// Judges kernels of consecutive seeds. `progress` is called after each, from one thread at a time.
// A kernel that takes too long, or crashes, ends the process with a message that names its seed.
CampaignReport run_campaign(const CampaignOptions& options,
                            const std::function<void()>& progress = {});

}  // namespace tilewright::checks::fuzz
