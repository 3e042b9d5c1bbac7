#include "library/tuning/family.h"

#include <fmt/format.h>

#include "compiler/build.h"
#include "ir/binding.h"
#include "library/schedule_choice.h"
#include "support/diagnostic.h"

namespace tilewright::library {

std::vector<FamilyMember> family_of(const LibraryKernel& kernel, const OptionValues& options,
                                    const std::string& arch) {
  std::vector<FamilyMember> members;
  const auto add = [&](const LibrarySchedule* schedule) {
    ScheduleChoice choice = {schedule, options, ""};
    std::string name = name_of(choice);
    if (options.has("schedule") && options.text("schedule") != name) return;
    members.push_back({std::move(name), std::move(choice), nullptr});
  };
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (schedule.target == arch) add(&schedule);
  }
  add(nullptr);
  return members;
}

schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, int multiprocessors) {
  if (member.machine == nullptr) {
    passes::Rewrites rewrites;
    member.machine = std::make_unique<const ir::Kernel>(
        compiler::lower(build_choice(kernel, member.choice).finish(), rewrites));
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
