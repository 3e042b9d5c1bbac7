#include "language/program_schedules.h"

#include <utility>

#include "ir/schedule.h"

namespace tilewright {
namespace {

thread_local const ProgramSchedules* current = nullptr;

}  // namespace

ProgramSchedules::ProgramSchedules(Of of) : of_(std::move(of)) { current = this; }

ProgramSchedules::~ProgramSchedules() { current = nullptr; }

ir::Kernel ProgramSchedules::stated(const ir::Kernel& kernel) {
  ir::Kernel launched = kernel;
  if (current && kernel.form == ir::Form::tile) {
    launched.schedule = ir::merged(current->of_(kernel), kernel.schedule);
  }
  return launched;
}

}  // namespace tilewright
