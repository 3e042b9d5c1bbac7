#pragma once

#include <map>
#include <string>
#include <vector>

#include "library/kernel_source.h"

namespace tilewright::checks {

// Sizes for one case of golden data.
struct GoldenSizes {
  // "above", "below", "few", "one", or "set" where nothing is left open; "rising", "holes"
  std::string name;
  std::vector<std::string> settings;               // those that were given, and the lengths
  std::map<std::string, std::string> inputs = {};  // what inputs hold, in words, beside those given
};

// For the lengths that `settings` and the files of inputs leave open: lengths that any tile of 16
// to 128 rows cuts short by one row, or exceeds by one, few rows, and one; pages for as many rows
// as three such tiles have, and one less or more. Only those that the kernel takes; where it takes
// none, what it says of the first. Then the first of them once more, where an online sum goes along
// an axis of an input that `inputs` leaves open: with places that outweigh those before them, since
// numbers that are all alike never scale a sum anew. And once more with what an option lets inputs
// hold, where it and they are left open.
std::vector<GoldenSizes> golden_sizes(const library::KernelSource& source,
                                      const std::vector<std::string>& settings,
                                      const std::map<std::string, std::string>& inputs);

}  // namespace tilewright::checks
