#include "library/tuning/family.h"

#include <fmt/format.h>

#include "compiler/build.h"
#include "ir/binding.h"
#include "library/schedule_choice.h"
#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

constexpr std::size_t kMaximumMembers = 4096;

// The values that the options leave a parameter.
std::vector<std::int64_t> values_of(const ScheduleParameter& parameter,
                                    const OptionValues& options) {
  if (!options.has(parameter.name)) return parameter.values;
  return {options.integer(parameter.name)};
}

void add_members(const LibraryKernel& kernel, const OptionValues& options,
                 const std::string& schedule, std::vector<FamilyMember>& members) {
  std::vector<Rule> combinations(1);
  combinations[0].schedule = schedule;
  for (const ScheduleParameter& parameter : parameters_of(kernel, schedule)) {
    std::vector<Rule> longer;
    for (const Rule& combination : combinations) {
      for (const std::int64_t value : values_of(parameter, options)) {
        longer.push_back(combination);
        longer.back().parameters[parameter.name] = value;
      }
    }
    combinations = std::move(longer);
    if (combinations.size() > kMaximumMembers) {
      Diagnostic({}, fmt::format("{}: schedule {} has more than {} combinations of parameters",
                                 kernel.name, schedule, kMaximumMembers))
          .fix(fmt::format("set some of them, such as {}", parameter.name))
          .raise();
    }
  }
  for (const Rule& combination : combinations) {
    FamilyMember member;
    member.choice = choice_of(kernel, options, combination);
    member.name = name_of(kernel, member.choice);
    member.refusal = refusal_of(member.choice);
    members.push_back(std::move(member));
  }
}

// The parameters that are set are other schedules'.
bool takes_what_is_set(const LibraryKernel& kernel, const OptionValues& options,
                       const std::string& schedule) {
  std::size_t known = options.has("schedule") ? 1 : 0;
  for (const KernelOption& option : kernel.options) known += options.has(option.name) ? 1 : 0;
  for (const ScheduleParameter& parameter : parameters_of(kernel, schedule)) {
    known += options.has(parameter.name) ? 1 : 0;
  }
  return known == options.all().size();
}

}  // namespace

std::vector<FamilyMember> family_of(const LibraryKernel& kernel, const OptionValues& options,
                                    const std::string& arch) {
  std::vector<std::string> names;
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (schedule.target == arch) names.push_back(schedule.name);
  }
  names.emplace_back("tile");
  std::vector<FamilyMember> members;
  for (const std::string& name : names) {
    if (options.has("schedule") && options.text("schedule") != name) continue;
    if (takes_what_is_set(kernel, options, name)) add_members(kernel, options, name, members);
  }
  for (FamilyMember& member : members) member.target = arch;
  return members;
}

schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, int multiprocessors) {
  if (member.machine == nullptr) {
    const Kernel traced = build_choice(kernel, member.choice);
    member.machine = std::make_unique<const ir::Kernel>(
        compiler::compile_to_machine(traced.finish(), member.target).kernel);
  }
  std::vector<ir::TensorShape> shapes;
  for (std::size_t i = 0; i < tensor_count(kernel, options); ++i) {
    const LibraryTensor& tensor = kernel.tensors[i];
    shapes.push_back({tensor.name, dtype_of(tensor, options), shape_of(tensor, options), {}});
  }
  for (const ir::Parameter& parameter : member.machine->parameters) {
    if (!parameter.is_owned()) continue;
    shapes.push_back({parameter.name, parameter.dtype, parameter.constant_shape(), {}});
  }
  target::Device device = target::device_of(member.machine->target);
  device.multiprocessors = multiprocessors;
  return schedules::estimate(*member.machine, ir::bind(*member.machine, shapes, multiprocessors),
                             device);
}

}  // namespace tilewright::library
