#include "library/library_build.h"

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "library/stated_schedule.h"

namespace tilewright::library {
namespace {

bool fits(const LibraryKernel& kernel, const ScheduleChoice& choice,
          const compiler::Target& target) {
  try {
    if (!kernel.is_program()) {
      compiler::compile_to_machine(build_choice(kernel, choice).finish(), target.arch);
      return true;
    }
    const Program program = build_program(kernel, choice);
    for (const auto& each : program.finish().kernels) {
      compiler::compile_to_machine(*each, target.arch);
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return false;
  }
}

}  // namespace

ScheduleChoice fitting(const LibraryKernel& kernel, const ScheduleChoice& choice,
                       const compiler::Target& target) {
  if (choice.schedule != nullptr || kernel.blocks.empty() ||
      !compiler::has_explicit_memories(target)) {
    return choice;
  }
  // Those of a program do in one kernel what several hand on to each other.
  if (!kernel.is_program() && fits(kernel, choice, target)) return choice;
  ScheduleChoice made = choice;
  for (const LibrarySchedule& blocks : kernel.blocks) {
    // A program that is made of another entry may have its blocks, which build that one's kernel.
    if (kernel.is_program() && !blocks.build_program) continue;
    made.schedule = &blocks;
    made.why = "the largest blocks that fit the memories of " + target.arch;
    if (fits(kernel, made, target)) return made;
  }
  return kernel.is_program() ? choice : made;
}

bool compiles(const LibraryKernel& kernel, const OptionValues& options,
              const compiler::Target& target) {
  const ScheduleChoice choice = choose_schedule(kernel, options, target.scheduled_for());
  return fits(kernel, fitting(kernel, choice, target), target);
}

Kernel trace_entry(const LibraryKernel& kernel, const OptionValues& options,
                   const compiler::Target& target) {
  check_fields(options, target);
  return build_choice(
      kernel, fitting(kernel, choose_schedule(kernel, options, target.scheduled_for()), target));
}

Program trace_program(const LibraryKernel& kernel, const OptionValues& options,
                      const compiler::Target& target) {
  check_fields(options, target);
  return build_program(
      kernel, fitting(kernel, choose_schedule(kernel, options, target.scheduled_for()), target));
}

}  // namespace tilewright::library
