#include "check/plan_cover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compiler/target.h"
#include "library/library_build.h"
#include "library/schedule_rules.h"
#include "support/parallel.h"
#include "support/random.h"
#include "tilewright/plan_case.h"

namespace tilewright::checks {
namespace {

using Values = std::vector<std::string>;
constexpr const char* kNot = "not ";

// Of an option that decides what is built; none of a length.
Values values_of(const KernelOption& option) {
  if (option.is_length) return {};
  if (!option.worth_trying.empty()) return option.worth_trying;
  switch (option.kind) {
    case KernelOption::Kind::boolean:
      return {"false", "true"};
    case KernelOption::Kind::dtype:
    case KernelOption::Kind::choice:
      return option.choices;
    case KernelOption::Kind::integer:
    case KernelOption::Kind::number:
    case KernelOption::Kind::lengths:
      break;
  }
  return {option.standard};
}

// All combinations, or so many of them that the seed draws, the standard one first.
class Combinations {
 public:
  Combinations(const LibraryKernel& kernel, std::size_t draws, std::uint64_t seed)
      : draws_(draws), random_(seed) {
    for (const KernelOption& option : kernel.options) {
      Values values = values_of(option);
      if (values.empty()) continue;
      // So that fewer than `draws` are never more by overflow.
      if (all_ <= draws_) all_ *= values.size();
      options_.emplace_back(&option, std::move(values));
    }
  }
  std::size_t count() const { return std::min(all_, draws_); }
  // What the number-th one sets.
  Values at(std::size_t number) {
    Values settings;
    std::size_t rest = number;
    for (const auto& [option, values] : options_) {
      std::size_t which = rest % values.size();
      rest /= values.size();
      if (all_ > draws_) which = number == 0 ? values.size() : random_.below(values.size());
      if (which == values.size() || values[which] == option->standard) continue;
      settings.push_back(option->name + "=" + values[which]);
    }
    return settings;
  }

 private:
  const std::size_t draws_;
  std::size_t all_ = 1;
  Random random_;
  std::vector<std::pair<const KernelOption*, Values>> options_;
};

using Item = std::pair<std::string, std::string>;  // of a case alone both are the same

// What one setting comes to: its cases and their pairs.
std::vector<Item> items_of(const std::set<std::string>& cases) {
  std::vector<Item> items;
  for (auto first = cases.begin(); first != cases.end(); ++first) {
    for (auto second = first; second != cases.end(); ++second) items.emplace_back(*first, *second);
  }
  return items;
}

// Marks those that together come to all that any of them does: the one that adds most first.
void choose(std::vector<PlanSetting>& drawn, std::set<Item>& universe) {
  std::vector<std::vector<Item>> items;
  for (const PlanSetting& each : drawn) {
    items.push_back(items_of(each.cases));
    universe.insert(items.back().begin(), items.back().end());
  }
  std::set<Item> left = universe;
  while (!left.empty()) {
    std::size_t best = 0, most = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::vector<Item>& own = items[i];
      own.erase(std::remove_if(own.begin(), own.end(),
                               [&](const Item& item) { return left.count(item) == 0; }),
                own.end());
      if (own.size() <= most) continue;
      most = own.size();
      best = i;
    }
    drawn[best].adds_cases = true;
    for (const Item& item : items[best]) left.erase(item);
  }
}

}  // namespace

std::set<std::string> plan_cases(const LibraryKernel& kernel,
                                 const std::vector<std::string>& settings,
                                 std::string_view target) {
  const OptionValues options = resolve_options(kernel, settings);
  kernel.check(options);
  const ScheduleChoice choice = choose_schedule(kernel, options, target);
  std::set<std::string> cases;
  {
    const PlanCases noted;
    if (kernel.is_program()) {
      build_program(kernel, choice);
    } else {
      build_choice(kernel, choice);
    }
    cases = noted.names();
  }
  for (const KernelOption& option : kernel.options) {
    if (option.kind == KernelOption::Kind::integer) continue;
    cases.insert(option.name + "=" + options.text(option.name));
  }
  return cases;
}

namespace {

PlanCover cover_plan(const LibraryKernel& kernel, std::string_view target, std::size_t draws,
                     std::uint64_t seed) {
  const bool is_core = compiler::has_explicit_memories(compiler::parse_target(target));
  PlanCover cover;
  cover.kernel = &kernel;
  Values schedules{library::kTile};
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (schedule.target == target) schedules.push_back(schedule.name);
  }
  std::map<bool, std::vector<PlanSetting>> drawn;  // of the tile level, of explicit schedules
  for (const std::string& schedule : schedules) {
    Combinations combinations(kernel, draws, seed);
    std::set<Values> seen;
    for (std::size_t i = 0; i < combinations.count(); ++i) {
      PlanSetting setting;
      setting.settings = combinations.at(i);
      setting.settings.insert(setting.settings.begin(), "schedule=" + schedule);
      if (!seen.insert(setting.settings).second) continue;
      try {
        setting.cases = plan_cases(kernel, setting.settings, target);
        if (is_core && !library::compiles(kernel, resolve_options(kernel, setting.settings),
                                          compiler::parse_target(target))) {
          if (i == 0) break;  // not as it usually is
          continue;
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::usage) throw;
        continue;  // options that do not fit together
      }
      drawn[schedule == library::kTile].push_back(std::move(setting));
    }
  }
  for (auto& [is_tile, settings] : drawn) {
    std::set<Item> universe;
    choose(settings, universe);
    cover.drawn += settings.size();
    for (const auto& [first, second] : universe) (first == second ? cover.cases : cover.pairs)++;
    std::set<std::string> has;
    for (const PlanSetting& each : settings) {
      if (each.adds_cases) has.insert(each.settings.front());
    }
    for (PlanSetting& each : settings) {
      if (each.adds_cases || has.insert(each.settings.front()).second) {
        cover.settings.push_back(std::move(each));
      }
    }
  }
  return cover;
}

}  // namespace

std::vector<PlanCover> cover_plans(const std::vector<LibraryKernel>& kernels,
                                   std::string_view target, std::size_t draws, std::uint64_t seed) {
  std::vector<PlanCover> covers(kernels.size());
  in_parallel(thread_count(0), kernels.size(), [&](std::size_t i, unsigned) {
    covers[i] = cover_plan(kernels[i], target, draws, seed);
  });
  return covers;
}

std::set<std::string> missing_cases(const std::vector<PlanCover>& covers) {
  std::set<std::string> reached, missing;
  for (const PlanCover& cover : covers) {
    for (const PlanSetting& each : cover.settings) {
      reached.insert(each.cases.begin(), each.cases.end());
    }
  }
  for (const std::string& name : reached) {
    if (name.find('=') != std::string::npos) continue;
    const std::string other =
        name.rfind(kNot, 0) == 0 ? name.substr(std::string(kNot).size()) : kNot + name;
    if (reached.count(other) == 0) missing.insert(other);
  }
  return missing;
}

}  // namespace tilewright::checks
