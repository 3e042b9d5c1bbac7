#include "simulator/machine/machine.h"

#include <cstddef>
#include <memory>

#include "simulator/core/core_machine.h"
#include "simulator/machine/control_only.h"
#include "simulator/machine/recorder.h"
#include "simulator/machine/world.h"

namespace tilewright::simulator {
namespace {

// No strides mean row-major.
Arguments with_strides(Arguments arguments) {
  for (TensorArgument& tensor : arguments.tensors) {
    if (tensor.strides.empty()) tensor.strides = row_major_strides(tensor.shape);
  }
  return arguments;
}

// Accesses are remembered by blocks of addresses. Memory of ours begins with one, so that a fault
// names the same bytes in every run.
constexpr std::size_t kAlignment = ShadowBlock::kBytes;

std::int32_t* aligned(std::vector<std::int32_t>& words) {
  void* data = words.data();
  std::size_t room = words.size() * sizeof(std::int32_t);
  return static_cast<std::int32_t*>(std::align(kAlignment, 0, data, room));
}

// Workspaces and signals are the runtime's: zeros at first. A launch has to leave workspaces zero.
// Scratch memory is NaN at first, which shows in whatever is made of it.
struct Workspaces {
  OwnedMemory own;
  std::vector<std::vector<std::int32_t>>& memory;

  Workspaces(const ir::Kernel& kernel, Arguments& arguments, const MachineOptions& options)
      : memory(options.owned ? options.owned->buffers : own.buffers) {
    if (options.launch == 0) memory.clear();
    const bool is_first = memory.empty();
    std::size_t next = 0;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_owned()) continue;
      const bool is_scratch = parameter.kind == ir::Parameter::Kind::scratch;
      if (is_first) {
        memory.emplace_back(
            static_cast<std::size_t>(parameter.element_count()) + kAlignment / sizeof(std::int32_t),
            is_scratch ? std::int32_t{-1} : std::int32_t{0});
      }
      std::vector<std::int32_t>& words = memory.at(next++);
      arguments.tensors.push_back({parameter.name,
                                   parameter.dtype,
                                   parameter.constant_shape(),
                                   {},
                                   reinterpret_cast<std::byte*>(aligned(words)),
                                   {}});
    }
  }

  // The last operation, in the order of the text, that changes the workspace.
  static SourceLocation last_change(const ir::Kernel& kernel, ir::ValueId workspace) {
    SourceLocation where;
    ir::for_each(kernel.body, [&](const ir::Operation& operation) {
      if (operation.op == ir::Op::atomic_add && operation.operands[0] == workspace) {
        where = operation.where;
      }
    });
    return where;
  }

  void check(const ir::Kernel& kernel, MachineReport& report) const {
    std::size_t next = 0;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_owned()) continue;
      const std::int32_t* const values = aligned(memory[next++]);
      if (!parameter.is_workspace()) continue;
      for (std::int64_t i = 0; i < parameter.element_count(); ++i) {
        if (values[i] == 0) continue;
        report.faults.push_back({"workspace", parameter.where, last_change(kernel, parameter.value),
                                 "workspace " + parameter.name + "[" + std::to_string(i) + "] is " +
                                     std::to_string(values[i]) + " after the launch",
                                 "what sets it back to 0: the next launch begins with it"});
      }
    }
  }
};

void note_written(const ir::Kernel& kernel, const Arguments& arguments, const GlobalMemory& memory,
                  MachineReport& report) {
  std::size_t next = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor()) continue;
    const TensorArgument& tensor = arguments.tensors[next++];
    if (parameter.kind != ir::Parameter::Kind::out) continue;
    report.written.push_back(memory.written(GlobalMemory::range_of(tensor)));
  }
}

}  // namespace

std::vector<bool> computations_left_out(const ir::Kernel& kernel, const Arguments& arguments,
                                        std::int64_t multiprocessors) {
  Arguments complete = arguments;
  const Workspaces workspaces(kernel, complete, {});
  complete = with_strides(std::move(complete));
  PreparedKernel prepared = prepare(kernel, complete, multiprocessors);
  keep_control_only(prepared, complete);
  std::map<const ir::Operation*, bool> left_out;
  for (const Instruction& each : prepared.code) {
    if (each.code != Code::computation) continue;
    const auto known = left_out.emplace(each.operation, true).first;
    known->second = known->second && !each.valued;
  }
  std::vector<bool> numbered;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    const auto found = left_out.find(&operation);
    numbered.push_back(found != left_out.end() && found->second);
  });
  return numbered;
}

MachineReport run_machine(const ir::Kernel& kernel, const Arguments& arguments,
                          const MachineOptions& options) {
  Arguments complete = arguments;
  const Workspaces workspaces(kernel, complete, options);
  complete = with_strides(std::move(complete));
  MachineReport report;
  if (target::target_of(kernel).core) {
    run_core(kernel, complete, options, report);
    if (options.recorder) options.recorder->end(report.faults);
    return report;
  }
  PreparedKernel prepared = prepare(kernel, complete, options.multiprocessors);
  if (options.control_only) keep_control_only(prepared, complete);
  if (options.by_instructions) {
    for (Compute& each : prepared.computes) each.by_instructions = true;
    for (ScalarOperation& each : prepared.scalar_operations) each.by_instructions = true;
  }
  FaultLog capacity(report, /*stop_at_first=*/false);
  check_capacity(prepared, capacity);
  // Memory that does not exist cannot be executed on.
  if (!report.ok()) {
    if (options.recorder) options.recorder->end(report.faults);
    return report;
  }
  World world(options, report);
  world.launch(prepared, complete);
  try {
    world.run();
    workspaces.check(kernel, report);
    if (options.note_written) note_written(kernel, complete, world.memory, report);
  } catch (const Stopped&) {
  }
  if (options.recorder) options.recorder->end(report.faults);
  world.count();
  return report;
}

}  // namespace tilewright::simulator
