#include "library/schedule_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/diagnostic.h"

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
  if (schedule == nullptr || schedule->target == target) return;
  std::string fit = kTile;
  for (const LibrarySchedule& other : kernel.schedules) {
    if (other.target == target) fit += ", " + other.name;
  }
  Diagnostic({},
             fmt::format("{}: schedule {} is for {}, and the target is {}", kernel.name,
                         schedule->name, schedule->target, target.empty() ? "interpreter" : target))
      .fix(fmt::format("set schedule to one of: {}", fit))
      .raise();
}

// A parameter of another schedule than the chosen one would do nothing.
void check_parameters(const LibraryKernel& kernel, const OptionValues& options,
                      const std::string& schedule) {
  std::vector<std::string> known;
  for (const KernelOption& option : kernel.options) known.push_back(option.name);
  for (const ScheduleParameter& parameter : parameters_of(kernel, schedule)) {
    known.push_back(parameter.name);
  }
  for (const auto& [name, value] : options.all()) {
    if (name == kSchedule || std::count(known.begin(), known.end(), name) != 0) continue;
    Diagnostic({}, fmt::format("{}: {} = {} is set, and schedule {} has no such parameter",
                               kernel.name, name, value, schedule))
        .fix(fmt::format("leave {} out, or set schedule to one that has it", name))
        .raise();
  }
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
  CompiledRules rules = load_rules(kernel, target, folder);
  if (options.has(kSchedule)) {
    check_target(kernel, options.text(kSchedule), target);
    rules.keep_schedule(options.text(kSchedule));
  }
  return rules;
}

ScheduleChoice choice_of(const LibraryKernel& kernel, const OptionValues& options,
                         const Rule& rule) {
  check_parameters(kernel, options, rule.schedule);
  ScheduleChoice choice;
  choice.schedule = find_schedule(kernel, rule.schedule);
  choice.options = options;
  choice.why = why(options, rule,
                   choice.schedule == nullptr ? "" : std::string_view(choice.schedule->target));
  for (const ScheduleParameter& parameter : parameters_of(kernel, rule.schedule)) {
    if (options.has(parameter.name)) {
      choice.why += fmt::format("; {}={} is set", parameter.name, options.text(parameter.name));
      continue;
    }
    const auto found = rule.parameters.find(parameter.name);
    choice.options.set(
        parameter.name,
        std::to_string(found == rule.parameters.end() ? parameter.standard : found->second));
  }
  return choice;
}

std::vector<std::string> variant_names(const LibraryKernel& kernel, const OptionValues& options,
                                       std::string_view target) {
  std::vector<std::string> names;
  const CompiledRules rules = open_rules(kernel, options, target, "");
  for (const Rule& rule : rules.rules()) {
    const ScheduleChoice choice = choice_of(kernel, options, rule);
    if (!refusal_of(choice).empty()) continue;
    std::string name = name_of(kernel, choice);
    if (std::count(names.begin(), names.end(), name) == 0) names.push_back(std::move(name));
  }
  return names;
}

std::string refusal_of(const ScheduleChoice& choice) {
  const bool asks = choice.schedule != nullptr && choice.schedule->refuse != nullptr;
  return asks ? choice.schedule->refuse(choice.options) : "";
}

std::string name_of(const LibraryKernel& kernel, const ScheduleChoice& choice) {
  const std::string schedule = choice.schedule == nullptr ? kTile : choice.schedule->name;
  std::string name = schedule;
  for (const ScheduleParameter& parameter : parameters_of(kernel, schedule)) {
    name += fmt::format(" {}={}", parameter.name, choice.options.text(parameter.name));
  }
  return name;
}

}  // namespace tilewright::library

namespace tilewright {

ScheduleChoice choose_schedule(const LibraryKernel& kernel, const OptionValues& options,
                               std::string_view target, const ScheduleOptions& how) {
  const library::CompiledRules rules =
      library::open_rules(kernel, options, target, how.rules_folder);
  std::vector<std::int64_t> values = rules.values_of(options, how.multiprocessors);
  return library::choice_of(kernel, options, rules.rules()[rules.match(values.data())]);
}

Kernel build_choice(const LibraryKernel& kernel, const ScheduleChoice& choice) {
  const std::string refusal = library::refusal_of(choice);
  if (!refusal.empty()) {
    Diagnostic({}, fmt::format("{}: there is no variant {}: {}", kernel.name,
                               library::name_of(kernel, choice), refusal))
        .note({}, "it is chosen by " + choice.why)
        .fix("set other parameters, another schedule, or schedule=tile")
        .raise();
  }
  return choice.schedule == nullptr ? kernel.build(choice.options)
                                    : choice.schedule->build(choice.options);
}

}  // namespace tilewright
