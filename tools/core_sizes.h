#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "library/kernel_source.h"
#include "tilewright/library.h"

namespace tilewright::tools {

// Sizes in which kernels for a core with explicit memories do all that they do, with little work.
struct CoreSizes {
  std::vector<ir::Kernel> kernels;
  // Of what the request leaves open: "heads=2", on which builds depend and which all have, and
  // lengths, "keys=323".
  std::vector<std::vector<std::string>> choices;
  // Of a program that divides its work among all cores: on many of them, so many parts that what
  // joins them takes several steps. Empty: there are none.
  std::vector<std::string> divided;
};
// `build` makes the kernels of settings, once or twice; what it made last stays.
CoreSizes core_sizes(
    const Request& request, const LibraryKernel& entry,
    const std::function<std::vector<ir::Kernel>(const std::vector<std::string>& settings)>& build);

// On how many cores they run.
inline constexpr std::int64_t kCoresOfSizes = 2, kManyCores = 64;

// On how many cores a program has each of the sizes.
std::vector<std::pair<std::vector<std::string>, std::int64_t>> sizes_on_cores(
    const CoreSizes& sizes, const ir::Program& program);

}  // namespace tilewright::tools
