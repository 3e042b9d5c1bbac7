#include "library/schedule_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ir.h"
#include "language/program_schedules.h"
#include "library/stated_schedule.h"
#include "support/diagnostic.h"
#include "target/devices.h"
#include "target/target.h"

namespace tilewright::library {
namespace {

const LibrarySchedule* find_schedule(const LibraryKernel& kernel, const std::string& name) {
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (schedule.name == name) return &schedule;
  }
  return nullptr;
}

void check_target(const LibraryKernel& kernel, const std::string& name, std::string_view target) {
  const LibrarySchedule* schedule = find_schedule(kernel, name);
  if (schedule == nullptr || target::takes_kernels(target, schedule->target)) return;
  std::string fit = kTile;
  for (const LibrarySchedule& other : kernel.schedules) {
    if (target::takes_kernels(target, other.target)) fit += ", " + other.name;
  }
  Diagnostic({},
             fmt::format("{}: schedule {} is for {}, and the target is {}", kernel.name,
                         schedule->name, schedule->target, target.empty() ? "interpreter" : target))
      .fix(fmt::format("set schedule to one of: {}", fit))
      .raise();
}

std::string why(const OptionValues& options, const Rule& rule, std::string_view target) {
  if (rule.where.file != nullptr) {
    return fmt::format("{}: {}", format_location(rule.where), rule.text);
  }
  if (options.has(kSchedule)) return fmt::format("schedule={} is set", rule.schedule);
  return rule.schedule == kTile ? "the tile-level definition"
                                : fmt::format("the first schedule for {}", target);
}

}  // namespace

CompiledRules open_rules(const LibraryKernel& kernel, const OptionValues& options,
                         std::string_view target, const std::string& folder) {
  if (!options.has(kSchedule)) return load_rules(kernel, target, folder);
  check_target(kernel, options.text(kSchedule), target);
  return CompiledRules(kernel, options.text(kSchedule));
}

ScheduleChoice choice_of(const LibraryKernel& kernel, const OptionValues& options,
                         const Rule& rule) {
  ScheduleChoice choice;
  choice.schedule = find_schedule(kernel, rule.schedule);
  choice.options = options;
  choice.why = why(options, rule,
                   choice.schedule == nullptr ? "" : std::string_view(choice.schedule->target));
  return choice;
}

std::vector<std::string> variant_names(const LibraryKernel& kernel, const OptionValues& options,
                                       std::string_view target) {
  std::vector<std::string> names;
  const CompiledRules rules = open_rules(kernel, options, target, "");
  const std::vector<bool> reachable = rules.reachable(options);
  for (std::size_t i = 0; i < reachable.size(); ++i) {
    const std::string& name = rules.rules()[i].schedule;
    if (reachable[i] && std::count(names.begin(), names.end(), name) == 0) names.push_back(name);
  }
  return names;
}

int multiprocessors_of(std::string_view target) {
  const std::vector<const target::Device*> of_target = target::devices_of(target);
  return of_target.empty() ? target::device_of(ir::default_target()).multiprocessors
                           : of_target.front()->multiprocessors;
}

std::string name_of(const ScheduleChoice& choice) {
  return choice.schedule == nullptr ? kTile : choice.schedule->name;
}

}  // namespace tilewright::library

namespace tilewright {

ScheduleChoice choose_schedule(const LibraryKernel& kernel, const OptionValues& options,
                               std::string_view target, const ScheduleOptions& how) {
  const library::CompiledRules rules =
      library::open_rules(kernel, options, target, how.rules_folder);
  std::vector<std::int64_t> values = rules.values_of(
      options, how.multiprocessors > 0 ? how.multiprocessors : library::multiprocessors_of(target));
  return library::choice_of(kernel, options, rules.rules()[rules.match(values.data())]);
}

namespace {

void check_choice(const LibraryKernel& kernel, bool as_program) {
  if (kernel.is_program() == as_program) return;
  Diagnostic({}, fmt::format("{} is a {}", kernel.name,
                             kernel.is_program() ? "program of several kernels" : "single kernel"))
      .fix(kernel.is_program() ? "build_program builds it" : "build_choice builds it")
      .raise();
}

}  // namespace

Kernel build_choice(const LibraryKernel& kernel, const ScheduleChoice& choice) {
  check_choice(kernel, /*as_program=*/false);
  Kernel built = choice.schedule == nullptr ? kernel.build(choice.options)
                                            : choice.schedule->build(choice.options);
  built.schedule(library::stated_schedule(choice.options));
  return built;
}

Program build_program(const LibraryKernel& kernel, const ScheduleChoice& choice) {
  check_choice(kernel, /*as_program=*/true);
  const library::ProgramFields fields(choice.options);
  const ProgramSchedules schedules([&](const ir::Kernel& launched) { return fields.of(launched); });
  Program built = choice.schedule == nullptr ? kernel.build_program(choice.options)
                                             : choice.schedule->build_program(choice.options);
  fields.check(built.finish());
  return built;
}

}  // namespace tilewright
