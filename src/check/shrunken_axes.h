#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/sized_kernels.h"
#include "tilewright/library.h"

namespace tilewright::checks {

struct Axis {
  std::int64_t box = 0;   // the largest of those of its copies; 0: there are none
  std::int64_t span = 0;  // what the CTAs of a cluster copy for one step, or for one tile
  bool is_output = false;
};
using Axes = std::map<std::string, Axis>;

// How the kernels go along each option that an axis is as long as.
Axes axes_of(const LibraryKernel& kernel, const std::vector<SizedKernel>& launched);

// Options that some kernel has one dim for: a launch refuses them where they are not the same.
std::vector<std::set<std::string>> options_of_one_dim(const std::vector<SizedKernel>& launched);

}  // namespace tilewright::checks
