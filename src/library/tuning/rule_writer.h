#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tilewright/library.h"

// From measured points to rules over ranges, and into a file of rules.
namespace tilewright::library {

// A size, or several that are tuned together as one, and the values that are measured: ascending.
struct TunedAxis {
  std::vector<std::string> names;
  std::vector<std::int64_t> values;
};

// The seconds of each variant at one point of the grid that the axes span; a variant that failed
// there is missing.
struct TunedPoint {
  std::vector<std::size_t> place;  // the number of the value on each axis
  std::map<std::string, double> seconds;
};

struct TunedRules {
  std::vector<std::string> lines;  // "when m <= 64 and n <= 1024: schedule=64x128"
  std::size_t variants = 0;
  double worst = 1;  // the largest ratio of what a rule chose to the best, over the points
};

// Neighbours share a rule where one variant is within `tolerance` (0.02: 2 %) of the best at all of
// them: few variants, and ranges rather than points. `facts` stand before every condition ("dim ==
// 64"); without facts the last line is unconditional.
TunedRules make_rules(const std::vector<TunedAxis>& axes, const std::vector<TunedPoint>& points,
                      const std::string& facts, double tolerance);

// The text of a file of rules with these in it: with facts before all others, in place of what was
// tuned for the same facts; without facts behind what was tuned for facts, in place of all others.
// `text` is empty for a new file.
std::string update_rules(const std::string& text, const LibraryKernel& kernel,
                         const std::string& target, const TunedRules& rules,
                         const std::string& facts, const std::string& remark);

}  // namespace tilewright::library
