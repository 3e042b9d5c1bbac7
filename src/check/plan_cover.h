#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/library.h"

// Which settings of the library's kernels are worth proving: few that lead to every case of their
// plans (plan_case.h), and to every two cases that go together.
namespace tilewright::checks {

struct PlanSetting {
  std::vector<std::string> settings;  // "name=value" of what is not as it is without them
  // What the plan notes, and "name=value" of each boolean, dtype and choice.
  std::set<std::string> cases;
  // Cases are counted apart for the tile-level definition and for explicit schedules. A setting
  // that adds none stands there for its schedule, which no other one has.
  bool adds_cases = false;
};

struct PlanCover {
  const LibraryKernel* kernel = nullptr;
  std::vector<PlanSetting> settings;
  std::size_t drawn = 0;  // settings that were tried, without those that the kernel refuses
  std::size_t cases = 0, pairs = 0;
};

// The cases of the kernel with these settings, as it is traced for the target. Raises what the
// kernel refuses.
std::set<std::string> plan_cases(const LibraryKernel& kernel,
                                 const std::vector<std::string>& settings, std::string_view target);

// Of each kernel: all of its settings where they are at most `draws` for a schedule, else so many
// that a seed draws. The same arguments have the same answer. Of a core with explicit memories
// those that it takes, and no setting of kernels that it does not take as they usually are.
std::vector<PlanCover> cover_plans(const std::vector<LibraryKernel>& kernels,
                                   std::string_view target, std::size_t draws, std::uint64_t seed);

// Of the cases that plans note: those that none of the settings leads to, "not slides" where each
// one slides.
std::set<std::string> missing_cases(const std::vector<PlanCover>& covers);

}  // namespace tilewright::checks
