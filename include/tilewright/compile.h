#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/kernel.h"
#include "tilewright/numerics.h"
#include "tilewright/schedule.h"
#include "tilewright/tensor_ref.h"

// From a kernel to something that runs.
namespace tilewright {

struct CompileOptions {
  int device = 0;  // the GPU's number, for cuda
  // Registers may be spilled, and arrays lie on the stack. Without it both are errors of an
  // explicit kernel; of the tile level they never are.
  bool allow_stack_frame = false;
  Numerics numerics;  // the interpreter rewrites nothing
  // Of a kernel of the tile level, for such a GPU. Its fields come before the kernel's own
  // (Kernel::schedule). For a kernel that leaves nothing to say a field is an error.
  Schedule schedule = {};
  // For kernels of the library: ScheduleOptions::rules_folder.
  std::string rules_folder = {};
  // Builds by NVRTC even if the cache of built kernels has the kernel, and replaces it there.
  bool build_afresh = false;
  // A GPU, real or simulated, checks the indices, blocks and ends that loaded numbers and integer
  // scalars decide, where it accesses memory. A run on cuda then ends when the work is done. One
  // that is out of bounds is an Error(result) with its line, tensor, number and bounds. Nothing is
  // accessed with it. The kernel is stopped by a trap, behind which the process can no longer use
  // that GPU. Registers may spill, and what the kernel requires of its own build is not asked.
  bool checked = false;
  // Of a simulated GPU or core machine, and where a schedule of the library is chosen for a GPU
  // that is not here. With few of them a persistent kernel comes to its second tile at small sizes.
  int multiprocessors = 132;
  // A run on a simulated GPU ends with Error(result) once warps have executed so many operations:
  // for a kernel that may never come to its end.
  std::int64_t max_operations = INT64_MAX;
};

// A compiled kernel. It may be run from several threads at once. One that was moved from raises
// Error(usage) at every use.
class Executable {
 public:
  ~Executable();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;

  const std::string& target() const;
  // `tensors` and `scalars` in the order of the kernel's parameters. On cuda the work is queued on
  // `stream`, a CUstream (null: the default stream); elsewhere it is done at return. Raises
  //   Error(usage) where their number, dtypes, shapes or strides do not fit the kernel, or a
  //     dimension's fact does not hold;
  //   Error(result) for a fault on a simulated GPU or on a real one, and for a pass that changes a
  //     result;
  //   Error(unavailable) where memory runs out, or the target only builds.
  void run(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars = {},
           void* stream = nullptr) const;
  // All of such a run but the work, on cuda: memory that the kernel needs beside its tensors is
  // then there, and the run can be captured in a CUDA graph. Raises what run raises. On other
  // targets it does nothing.
  void prepare(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars = {},
               void* stream = nullptr) const;

 private:
  friend Executable compile(const Kernel&, std::string_view, const CompileOptions&);
  friend Executable compile_traced(const ir::Kernel&, std::string_view, const CompileOptions&);
  struct State;
  explicit Executable(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What runs where nobody names a target: "cuda" where this machine has a GPU that Tilewright
// compiles for, else "cpu".
std::string_view default_target();

// `target`: "cpu" (kernels of the tile level, natively on this processor), "interpreter" (the same
// kernels, block by block: what they mean), "sim:sm_90a" (a simulated GPU executes what would ship
// to one, and raises Error(result) for the first fault), "passes:sm_90a" (the same before and after
// every pass of the compiler, each of which must keep the result), "cuda" (the GPU that is here),
// or an architecture such as "sm_90a", whose kernels are built and checked, and cannot be run.
// docs/incore.md has the targets of core machines. Raises
//   Error(usage) at the kernel's line for what the target does not take, for a claim that does not
//     hold, for what does not fit registers or shared memory, and for an unknown target;
//   Error(unavailable) where the target's GPU, driver or compiler is not here.
Executable compile(const Kernel& kernel, std::string_view target = default_target(),
                   const CompileOptions& options = {});
// The same by a schedule: compile(kernel, "cuda", Schedule{.stages = 3}).
Executable compile(const Kernel& kernel, std::string_view target,
                   const std::same_as<Schedule> auto& schedule, CompileOptions options = {}) {
  options.schedule = schedule;
  return compile(kernel, target, options);
}

}  // namespace tilewright
