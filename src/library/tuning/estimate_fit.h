#pragma once

#include <optional>
#include <string>
#include <vector>

#include "library/tuning/rule_writer.h"
#include "tilewright/library.h"

// Rules that compare estimates, refitted to what was measured.
namespace tilewright::library {

// What one launch's variants took.
struct MeasuredLaunch {
  OptionValues options;
  std::map<std::string, double> seconds;  // by the variant's name
};

struct FittedRules {
  std::string text;          // of the file
  std::size_t variants = 0;  // whose factors were fitted
  double worst = 1;          // as of TunedRules, over the launches whose choice was measured
};

// Rules that hold `let time_SCHEDULE = FACTOR * (...)` choose the least of these estimates. Their
// factors become what makes them agree best, in the logarithm and beside each other, with the
// times measured; everything else stays, but that they serve this kernel alone. Nothing where
// `rules` hold no such estimate of a variant that was measured.
std::optional<FittedRules> fit_estimates(const LibraryKernel& kernel, const ScheduleRules& rules,
                                         const std::vector<MeasuredLaunch>& launches,
                                         int multiprocessors, const std::string& remark);

}  // namespace tilewright::library
