#include "library/tuning/family.h"

#include <fmt/format.h>

#include "compiler/build.h"
#include "ir/binding.h"
#include "library/schedule_choice.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::library {

std::vector<FamilyMember> family_of(const LibraryKernel& kernel, const OptionValues& options,
                                    const std::string& arch) {
  std::vector<FamilyMember> members;
  const auto add = [&](const LibrarySchedule* schedule) {
    ScheduleChoice choice = {schedule, options, ""};
    std::string name = name_of(choice);
    if (options.has("schedule") && options.text("schedule") != name) return;
    members.push_back({std::move(name), arch, std::move(choice), nullptr});
  };
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (target::takes_kernels(arch, schedule.target)) add(&schedule);
  }
  add(nullptr);
  return members;
}

namespace {

FamilyMember::Lowered lower(const LibraryKernel& kernel, const FamilyMember& member) {
  FamilyMember::Lowered made;
  if (!kernel.is_program()) {
    const Kernel traced = build_choice(kernel, member.choice);
    made.machine.push_back(compiler::compile_to_machine(traced.finish(), member.target).kernel);
    return made;
  }
  made.program = build_program(kernel, member.choice).finish();
  for (const auto& each : made.program.kernels) {
    made.machine.push_back(compiler::compile_to_machine(*each, member.target).kernel);
  }
  return made;
}

std::vector<ir::TensorShape> shapes_of(const LibraryKernel& kernel, const OptionValues& options) {
  std::vector<ir::TensorShape> shapes;
  for (const LibraryTensor* tensor : tensors_of(kernel, options)) {
    shapes.push_back({tensor->name, dtype_of(*tensor, options), shape_of(*tensor, options), {}});
  }
  return shapes;
}

// What no caller passes comes last.
ir::Binding bind_launch(const ir::Kernel& machine, std::vector<ir::TensorShape> shapes,
                        const target::Device& device) {
  std::size_t tensors = 0;
  for (const ir::Parameter& parameter : machine.parameters) {
    if (!parameter.is_tensor() || tensors++ < shapes.size()) continue;
    shapes.push_back({parameter.name, parameter.dtype, parameter.constant_shape(), {}});
  }
  return ir::bind(machine, shapes, device.multiprocessors);
}

std::vector<ir::TensorShape> shapes_of(const ir::Program& program,
                                       const ir::ProgramOperation& launch) {
  std::vector<ir::TensorShape> given;
  for (const ir::ProgramPart& part : launch.tensors) {
    const ir::ProgramBuffer& buffer = program.buffers[part.buffer];
    given.push_back({buffer.name, buffer.dtype, ir::constants(part.sizes), buffer.strides});
  }
  return given;
}

double bytes_of(const ir::Program& program, const ir::ProgramPart& part) {
  double bytes = size_of(program.buffers[part.buffer].dtype);
  for (const Dim& size : part.sizes) bytes *= static_cast<double>(ir::constant(size));
  return bytes;
}

schedules::Estimate estimate_program(const FamilyMember::Lowered& lowered,
                                     const std::vector<ir::TensorShape>& shapes,
                                     const target::Device& device) {
  using Kind = ir::ProgramOperation::Kind;
  const ir::Program program = ir::bind_program(lowered.program, shapes, device.multiprocessors);
  schedules::Estimate sum;
  double slowest = 0;
  const auto add = [&](schedules::Estimate each) {
    if (sum.seconds > 0) {
      each.seconds += device.reached.next_launch_seconds - device.reached.launch_seconds;
    }
    sum.seconds += each.seconds;
    for (const schedules::EstimatePart& part : schedules::kEstimateParts) {
      sum.*part.seconds += each.*part.seconds;
    }
    if (each.seconds < slowest) return;
    slowest = each.seconds;
    sum.bound = each.bound;
    sum.ctas = each.ctas;
    sum.resident = each.resident;
    sum.shared_bytes = each.shared_bytes;
  };
  for (const ir::ProgramOperation& operation : program.operations) {
    if (operation.kind == Kind::launch) {
      const ir::Kernel& machine = lowered.machine[operation.kernel];
      add(schedules::estimate(machine, bind_launch(machine, shapes_of(program, operation), device),
                              device));
    } else if (operation.kind == Kind::copy || operation.kind == Kind::zero) {
      const double passes = operation.kind == Kind::copy ? 2 : 1;
      schedules::Estimate moved;
      moved.memory = passes * bytes_of(program, operation.to) / device.reached.memory_bytes;
      moved.seconds = device.reached.launch_seconds + moved.memory;
      moved.bound = "memory";
      add(moved);
    }
  }
  return sum;
}

double product_flops_of(const FamilyMember::Lowered& lowered,
                        const std::vector<ir::TensorShape>& shapes, const target::Device& device) {
  const ir::Program program = ir::bind_program(lowered.program, shapes, device.multiprocessors);
  double sum = 0;
  for (const ir::ProgramOperation& operation : program.operations) {
    if (operation.kind != ir::ProgramOperation::Kind::launch) continue;
    const ir::Kernel& machine = lowered.machine[operation.kernel];
    sum += schedules::product_flops(
        machine, bind_launch(machine, shapes_of(program, operation), device), device);
  }
  return sum;
}

const FamilyMember::Lowered& lowered_of(const LibraryKernel& kernel, const FamilyMember& member) {
  if (member.lowered == nullptr) {
    member.lowered = std::make_unique<const FamilyMember::Lowered>(lower(kernel, member));
  }
  return *member.lowered;
}

target::Device device_of(const FamilyMember& member, int multiprocessors) {
  target::Device device = target::device_of(member.target);
  device.multiprocessors = multiprocessors;
  return device;
}

}  // namespace

schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, int multiprocessors) {
  return estimate(kernel, member, options, device_of(member, multiprocessors));
}

schedules::Estimate estimate(const LibraryKernel& kernel, const FamilyMember& member,
                             const OptionValues& options, const target::Device& device) {
  const FamilyMember::Lowered& lowered = lowered_of(kernel, member);
  std::vector<ir::TensorShape> shapes = shapes_of(kernel, options);
  if (kernel.is_program()) return estimate_program(lowered, shapes, device);
  const ir::Kernel& machine = lowered.machine.front();
  return schedules::estimate(machine, bind_launch(machine, std::move(shapes), device), device);
}

double product_flops(const LibraryKernel& kernel, const FamilyMember& member,
                     const OptionValues& options, int multiprocessors) {
  const FamilyMember::Lowered& lowered = lowered_of(kernel, member);
  const target::Device device = device_of(member, multiprocessors);
  std::vector<ir::TensorShape> shapes = shapes_of(kernel, options);
  if (kernel.is_program()) return product_flops_of(lowered, shapes, device);
  const ir::Kernel& machine = lowered.machine.front();
  return schedules::product_flops(machine, bind_launch(machine, std::move(shapes), device), device);
}

}  // namespace tilewright::library
