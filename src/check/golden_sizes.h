#pragma once

#include <string>
#include <vector>

#include "library/kernel_source.h"

namespace tilewright::checks {

// Sizes for one case of golden data.
struct GoldenSizes {
  std::string name;  // "above", "below", "few", "one", or "set" where nothing is left open
  std::vector<std::string> settings;  // those that were given, and the lengths
};

// For the lengths that `settings` and the files of inputs leave open: lengths that any tile of 16
// to 128 rows cuts short by one row, or exceeds by one, few rows, and one. Only those that the
// kernel takes; where it takes none, what it says of the first.
std::vector<GoldenSizes> golden_sizes(const library::KernelSource& source,
                                      const std::vector<std::string>& settings,
                                      bool sizes_from_files);

}  // namespace tilewright::checks
