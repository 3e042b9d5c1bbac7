#pragma once

#include <functional>

#include "ir/ir.h"
#include "tilewright/schedule.h"

namespace tilewright {

// While it lives, programs that its thread records launch kernels of the tile level with these
// fields before those that their authors state. One at a time in a thread.
class ProgramSchedules {
 public:
  using Of = std::function<Schedule(const ir::Kernel& kernel)>;
  explicit ProgramSchedules(Of of);
  ProgramSchedules(const ProgramSchedules&) = delete;
  ~ProgramSchedules();

  // The kernel as a program of this thread launches it.
  static ir::Kernel stated(const ir::Kernel& kernel);

 private:
  Of of_;
};

}  // namespace tilewright
